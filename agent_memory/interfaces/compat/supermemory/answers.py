"""Convert this server's memories and sessions to Supermemory's API format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agent_memory.foundation.llm.profiles import raised
from agent_memory.foundation.text.normalization import ABOUT_USER, QUESTION
from agent_memory.foundation.text.terms import query_terms, terms
from agent_memory.interfaces.compat.service import similarity_of
from agent_memory.interfaces.compat.supermemory.documents import content_of
from agent_memory.interfaces.compat.supermemory.documents import metadata_of as stored_metadata
from agent_memory_client.models import MemoryRecord, MemoryRecordResult, WorkingMemoryResponse
from agent_memory_client.models.features.files import StoredFile

TAGS = "container_tags"
"""Metadata key for all container tags after the first."""
_OUR_METADATA = frozenset({"role", QUESTION, ABOUT_USER, TAGS})
_MOST_TITLE = 80
# Compare only this many characters of a hit with the query: an answer may contain a hundred long documents.
_COMPARED_CHARS = 8_000


def moment(value: datetime) -> str:
    """Return a time as ISO 8601 in UTC."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def metadata_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata, excluding keys that this server added."""
    return {key: value for key, value in metadata.items() if key not in _OUR_METADATA}


def raw_similarity(hit: MemoryRecordResult, query: str) -> float:
    """Return the cosine similarity, raised according to the share of query words in the hit.

    If the hit has no vector, only the words determine its score.
    """
    query_words, has = query_terms(query), set(terms(hit.text[:_COMPARED_CHARS]))
    share = sum(term in has for term in query_words) / len(query_words) if query_words else 0.0
    similarity = None if hit.explanation is None else hit.explanation.similarity
    return raised(max(similarity or 0.0, 0.0), share)


def root_of(record: MemoryRecord) -> str:
    """Return the id of a memory's first version."""
    return record.supersedes[0] if record.supersedes else record.id


def _system(record: MemoryRecord) -> dict[str, str]:
    return {"createdAt": moment(record.created_at), "updatedAt": moment(record.updated_at)}


def hit_answer(hit: MemoryRecordResult, version: int, *, chunk: bool) -> dict[str, Any]:
    """Return a search result, which is a memory or, if `chunk` is true, a message."""
    return {
        "id": hit.id,
        "chunk" if chunk else "memory": hit.text,
        "rootMemoryId": root_of(hit),
        "metadata": metadata_of(hit.metadata) or None,
        "updatedAt": moment(hit.updated_at),
        "version": version,
        "similarity": similarity_of(hit),
        "filepath": None,
        "documents": [{"id": hit.session_id, **_system(hit)}] if hit.session_id else [],
    }


def namespace_hit(hit: MemoryRecordResult, *, chunk: bool) -> dict[str, Any]:
    """Return a search result in the format of 5.x clients."""
    return {
        "id": hit.id,
        "chunk" if chunk else "memory": hit.text,
        "metadata": metadata_of(hit.metadata),
        "similarity": similarity_of(hit),
        "isLatest": True,
        "isInference": hit.source_class == "inference",
        "system": _system(hit),
    }


def memory_answer(record: MemoryRecord, version: int) -> dict[str, Any]:
    """Return a memory as a list entry in the format of 5.x clients."""
    return {
        "id": record.id,
        "memory": record.text,
        "metadata": metadata_of(record.metadata),
        "isStatic": False,
        "isInference": record.source_class == "inference",
        "isLatest": True,
        "isForgotten": False,
        "version": version,
        "system": _system(record),
    }


def chunk_answer(name: str, position: int, text: str, made: datetime, metadata: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a message as a list entry in the format of 5.x clients."""
    own = {} if metadata is None else metadata_of(metadata)
    return {"id": name, "position": position, "content": text, "type": "text", "metadata": own, "system": {"createdAt": moment(made)}}


def document_results(
    hits: Sequence[MemoryRecordResult], whole: Mapping[tuple[str | None, str | None], Mapping[str, Any]] | None
) -> list[dict[str, Any]]:
    """Return the results of /v3/search, best document first.

    `whole` maps (user, id) pairs to documents.
    """
    documents: dict[tuple[str | None, str], dict[str, Any]] = {}
    for hit in hits:
        name = hit.session_id or hit.id
        document = documents.setdefault(
            (hit.user_id, name),
            {
                "documentId": name,
                "chunks": [],
                "title": hit.text[:_MOST_TITLE],
                "type": "text",
                "metadata": metadata_of(hit.metadata) or None,
                "score": similarity_of(hit),
                **_system(hit),
                **({} if whole is None else {"content": whole.get((hit.user_id, hit.session_id), {"content": hit.text})["content"]}),
            },
        )
        document["chunks"].append({"content": hit.text, "isRelevant": True, "score": similarity_of(hit)})
        document["score"] = max(document["score"], similarity_of(hit))
    return list(documents.values())


# Document fields that this server does not fill.
_UNFILLED = dict.fromkeys(("connectionId", "filepath", "ogImage", "raw", "source", "spatialPoint", "summary", "url"))


def document_answer(session: WorkingMemoryResponse, status: str, *, content: bool = True) -> dict[str, Any]:
    metadata, text = stored_metadata(session), content_of(session)
    return {
        **_document(session.session_id, session.user_id, metadata),
        "customId": session.session_id,
        "content": text if content else None,
        "createdAt": moment(session.messages[0].created_at),
        "updatedAt": moment(session.messages[-1].created_at),
        "status": status,
        "title": text[:_MOST_TITLE],
        "type": "text",
    }


def file_answer(file: StoredFile, session: WorkingMemoryResponse | None) -> dict[str, Any]:
    """Return a document that was uploaded as a file."""
    return {
        **_document(file.id, file.user_id, file.metadata),
        "customId": None,
        "content": None if session is None else content_of(session),
        "createdAt": moment(file.created_at),
        "updatedAt": moment(file.updated_at),
        "status": {"queued": "queued", "ready": "done", "failed": "failed"}[file.state],
        "title": file.name,
        "type": "pdf" if file.media_type == "application/pdf" else "text",
    }


def _document(name: str, user: str | None, metadata: Mapping[str, Any]) -> dict[str, Any]:
    others = metadata.get(TAGS)
    tags = [*([user] if user else []), *(others if isinstance(others, list) else [])]
    return {**_UNFILLED, "id": name, "containerTags": tags, "metadata": metadata_of(metadata) or None, "taskType": "memory"}
