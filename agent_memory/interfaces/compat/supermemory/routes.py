"""Routes for versions 3.x (/v3, /v4) and 5.x (/ns) of Supermemory's clients."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from fastapi import Request, Response
from pydantic_core import from_json

from agent_memory.foundation.api.body import read_object
from agent_memory.foundation.api.dependencies import scope_of
from agent_memory.foundation.api.responses import JsonResponse
from agent_memory.foundation.core.errors import BadInput, NotFound, NotSupported
from agent_memory.interfaces.compat.routing import CompatApi, Handler, Operation
from agent_memory.interfaces.compat.service import MAX_PAGE, refuse_unknown
from agent_memory.interfaces.compat.supermemory import requests as takes
from agent_memory.interfaces.compat.supermemory.answers import (
    chunk_answer,
    document_results,
    hit_answer,
    memory_answer,
    moment,
    namespace_hit,
    root_of,
)
from agent_memory.interfaces.compat.supermemory.files import FileDocuments, Upload, read_upload
from agent_memory.interfaces.compat.supermemory.service import milliseconds_since, page_of
from agent_memory.interfaces.opened_runtime import runtime_of
from agent_memory_client.models import MemoryRecord


async def _answer(handler: Handler, request: Request) -> Response:
    answer = await handler(request, FileDocuments(runtime_of(request), scope_of(request)))
    return Response(status_code=204) if answer is None else JsonResponse(answer)


def _name(request: Request) -> str:
    return request.path_params["name"]


def _tag(request: Request) -> str | None:
    return request.path_params.get("namespace")


async def _body(request: Request) -> dict[str, Any]:
    body = await read_object(request)
    tag = _tag(request)
    return body if tag is None else _in_namespace(body, tag)


async def _add(request: Request, service: FileDocuments) -> Any:
    document = takes.Document.model_validate(await _body(request))
    keep = await service.prepare_context(document.user, document.context) if document.context else None
    return await service.add(document, keep)


def _tags_of(tags: str) -> Any:
    """Return container tags, which 3.x clients send as a single tag or a JSON array."""
    try:
        return from_json(tags) if tags.startswith("[") else [tags]
    except ValueError:
        raise BadInput("must be a tag or a JSON array of tags", field="containerTags") from None


async def _add_file(request: Request, service: FileDocuments) -> Any:
    fields, data, media_type = await read_upload(request)
    tags = fields.pop("containerTags", None)
    if tags is not None:
        fields["containerTags"] = _tags_of(tags)
    upload = Upload.model_validate(fields if _tag(request) is None else {**fields, "containerTag": _tag(request)})
    context = upload.supporting_context
    return await service.upload(upload, data, media_type, await service.prepare_context(upload.user, context) if context else None)


async def _add_batch(request: Request, service: FileDocuments) -> Any:
    body = await _body(request)
    tag = _tag(request)
    if tag is not None and isinstance(body.get("documents"), list):
        body["documents"] = [_in_namespace(document, tag) for document in body["documents"]]
    batch = takes.DocumentBatch.model_validate(body)
    contexts = {name: await service.prepare_context(name, context) for name, context in batch.contexts().items()}
    answer = await service.add_batch(batch, contexts)
    return answer if tag is None else {"results": answer["results"], "count": answer["success"], "failed": answer["failed"]}


def _in_namespace(document: Any, tag: str) -> Any:
    if not isinstance(document, dict):
        return document
    return {**document, "containerTag": tag, **({"customId": document["id"]} if document.get("id") else {})}


async def _get(request: Request, service: FileDocuments) -> Any:
    name, tag = _name(request), _tag(request)
    document = await service.get(name, tag)
    if tag is None:
        return document
    included: dict[str, Any] = {}
    parts = _included(request)
    if "chunks" in parts:
        included["chunks"] = await service.parts(name, tag)
    if "memories" in parts:
        records, _ = await service.memories(takes.DocumentListing(container_tag=tag, doc_id=name, limit=MAX_PAGE))
        included["memories"] = await _memories(service, records)
    return {**_namespace_document(document), **included}


def _has_body(request: Request) -> bool:
    return request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers


def _included(request: Request) -> set[str]:
    return {part for value in request.query_params.getlist("include") for part in value.split(",")}


async def _memories(service: FileDocuments, records: Sequence[MemoryRecord]) -> list[dict[str, Any]]:
    versions = await service.versions(records)
    return [memory_answer(record, versions[record.id]) for record in records]


def _namespace_document(document: dict[str, Any]) -> dict[str, Any]:
    content_fields = {key: document[key] for key in ("id", "title", "type", "summary", "content", "url")}
    state = {"status": document["status"], "dreamingStatus": document["status"]}
    times = {key: document[key] for key in ("createdAt", "updatedAt")}
    return {**content_fields, "metadata": document["metadata"] or {}, "system": {**state, **times}}


async def _change(request: Request, service: FileDocuments) -> Any:
    changes = takes.DocumentChanges.model_validate(await read_object(request))
    keep = await service.prepare_context(_tag(request), changes.supporting_context) if changes.supporting_context else None
    return await service.change(_name(request), changes, _tag(request), keep)


async def _container(request: Request, service: FileDocuments) -> Any:
    return await service.container(_tag(request) or "")


async def _change_container(request: Request, service: FileDocuments) -> Any:
    changes, tag = takes.ContainerChanges.model_validate(await read_object(request)), _tag(request) or ""
    await service.container(tag)
    await (await service.prepare_context(tag, changes.supporting_context))()
    return await service.container(tag)


async def _read_deletion(request: Request, *allowed_names: str) -> dict[str, Any]:
    """Return the body of a delete request.

    Raises NotSupported for an unknown field, because it may be meant as a filter.
    """
    body = await read_object(request)
    refuse_unknown((name for name, value in body.items() if value not in (None, {}, "")), allowed_names, f"DELETE {request.url.path}: ")
    return body


async def _delete_container(request: Request, service: FileDocuments) -> Any:
    if _has_body(request):
        await _read_deletion(request)
    return await service.delete_container(_tag(request) or "")


async def _delete(request: Request, service: FileDocuments) -> Any:
    await service.delete(_name(request), _tag(request))


async def _namespace_delete(request: Request, service: FileDocuments) -> Any:
    deletion = takes.BulkDelete.model_validate(await _read_deletion(request, "ids"))
    deleted = await service.delete_many(deletion, _tag(request))
    return {"count": deleted["deletedCount"], "errors": deleted.get("errors", [])}


async def _delete_many(request: Request, service: FileDocuments) -> Any:
    return await service.delete_many(takes.BulkDelete.model_validate(await _read_deletion(request, *takes.field_names(takes.BulkDelete))))


async def _list(request: Request, service: FileDocuments) -> Any:
    documents, page = await service.list(takes.DocumentListing.model_validate(await read_object(request)))
    return {"memories": documents, "pagination": page}


async def _processing(request: Request, service: FileDocuments) -> Any:
    documents, _ = await service.list(takes.DocumentListing(limit=100))
    waiting = [document for document in documents if document["status"] == "queued"]
    return {"documents": waiting, "totalCount": len(waiting)}


async def _search_documents(request: Request, service: FileDocuments) -> Any:
    begun = time.perf_counter()
    values = dict(request.query_params) if request.method == "GET" else await read_object(request)
    body = takes.Search.model_validate({**values, "searchMode": "documents"})
    hits = [hit for hit, _ in await service.search(body)]
    results = document_results(hits, await service.documents_of(hits) if body.include_full_docs else None)
    return {"results": results, "total": len(results), "timing": milliseconds_since(begun)}


async def _search(request: Request, service: FileDocuments) -> Any:
    begun = time.perf_counter()
    results = await _hits(service, takes.Search.model_validate(await read_object(request)))
    return {"results": results, "total": len(results), "timing": milliseconds_since(begun)}


async def _hits(service: FileDocuments, search: takes.Search) -> list[dict[str, Any]]:
    hits = await service.search(search)
    versions = await service.versions([hit for hit, _ in hits])
    return [hit_answer(hit, versions[hit.id], chunk=chunk) for hit, chunk in hits]


async def _profile(request: Request, service: FileDocuments) -> Any:
    begun = time.perf_counter()
    question = takes.ProfileQuestion.model_validate(await read_object(request))
    profile = await service.profile(question.user)
    texts = {"static": [entry.text for entry in profile.static], "dynamic": [entry.text for entry in profile.dynamic]}
    answer: dict[str, Any] = {"profile": texts}
    if question.q:
        search = takes.Search(q=question.q, container_tags=question.tags(), threshold=question.threshold, filters=question.filters)
        results = await _hits(service, search)
        answer["searchResults"] = {"results": results, "total": len(results), "timing": milliseconds_since(begun)}
    return answer


async def _create(request: Request, service: FileDocuments) -> Any:
    made = await service.create(takes.NewMemories.model_validate(await read_object(request)))
    now = moment(datetime.now(UTC))
    return {"documentId": None, "memories": [{**memory, "isStatic": False, "createdAt": now} for memory in made]}


async def _change_memory(request: Request, service: FileDocuments) -> Any:
    record = await service.change_memory(takes.ChangedMemory.model_validate(await read_object(request)))
    return {
        "id": record.id,
        "memory": record.text,
        "createdAt": moment(record.updated_at),
        "version": (await service.versions([record]))[record.id],
        "parentMemoryId": record.id,
        "rootMemoryId": root_of(record),
        "forgetAfter": None if record.expires_at is None else moment(record.expires_at),
        "forgetReason": None,
    }


async def _converse(request: Request, service: FileDocuments) -> Any:
    return await service.converse(takes.Conversation.model_validate(await read_object(request)))


async def _forget(request: Request, service: FileDocuments) -> Any:
    body = await _read_deletion(request, *takes.field_names(takes.NamedMemory))
    return {"id": await service.forget(takes.NamedMemory.model_validate(body)), "forgotten": True}


async def _namespace_search(request: Request, service: FileDocuments) -> Any:
    begun = time.perf_counter()
    body = await _body(request)
    if body.get("rerank") == "aggregate":
        raise NotSupported("search: rerank: aggregate")
    mode = body.get("searchMode") or "hybrid"
    search = takes.Search.model_validate({**body, "q": body.get("query"), "searchMode": "documents" if mode == "chunks" else mode})
    hits = await service.search(search)
    results = [namespace_hit(hit, chunk=chunk) for hit, chunk in hits]
    if (search.include or {}).get("documents"):
        documents = await service.documents_of([hit for hit, _ in hits])
        for result, (hit, _) in zip(results, hits, strict=True):
            if (document := documents.get((hit.user_id, hit.session_id))) is not None:
                result["included"] = {"document": _namespace_document(document)}
    return {"results": results, "searchTime": milliseconds_since(begun)}


async def _namespace_profile(request: Request, service: FileDocuments) -> Any:
    question = takes.ProfileQuestion.model_validate(await _body(request))
    if question.filter or question.buckets:
        raise NotSupported("profile: filter and buckets")
    profile = await service.profile(_tag(request))
    facts = {
        name: [{"id": entry.id, "memory": entry.text} for entry in entries]
        for name, entries in (("static", profile.static), ("dynamic", profile.dynamic))
    }
    return {"profile": {**facts, "buckets": {}}}


async def _namespace_list(request: Request, service: FileDocuments) -> Any:
    kind, tag = request.path_params["kind"], _tag(request) or ""
    body = await read_object(request) if _has_body(request) else {}
    include = body.get("include")
    listing_fields = {"filter": body.get("filter"), "includeContent": isinstance(include, dict) and bool(include.get("content"))}
    listing = takes.DocumentListing.model_validate({**request.query_params, **listing_fields, "containerTag": tag})
    answer: dict[str, Any] = {"documents": [], "chunks": [], "memories": []}
    if kind == "documents":
        documents, page = await service.list(listing)
        return {**answer, kind: [_namespace_document(document) for document in documents], "pagination": page}
    if kind not in ("memories", "chunks"):
        raise NotSupported(f"list: {kind[:64]}")
    records, total = await service.memories(listing, chunks=kind == "chunks")
    page = page_of(listing.page, min(listing.limit, MAX_PAGE), total)
    if kind == "memories":
        return {**answer, kind: await _memories(service, records), "pagination": page}
    chunks = [
        {**chunk_answer(record.id, 0, record.text, record.created_at, record.metadata), "documentId": record.session_id or record.id}
        for record in records
    ]
    return {**answer, kind: chunks, "pagination": page}


async def _namespace_memory(request: Request, service: FileDocuments) -> Any:
    record = await service.memory(_name(request))
    if record.user_id != _tag(request):
        raise NotFound(f"Memory {record.id} not found", field="id")
    parts = _included(request)
    if "related" in parts:
        raise NotSupported("memories.get: include: related")
    answer = memory_answer(record, (await service.versions([record]))[record.id])
    if "documents" in parts:
        documents = await service.documents_of([record])
        answer["included"] = (
            {"document": _namespace_document(document)} if (document := documents.get((record.user_id, record.session_id))) else {}
        )
    return answer


async def _namespace_forget(request: Request, service: FileDocuments) -> Any:
    ids = (await _read_deletion(request, "ids")).get("ids")
    if not isinstance(ids, list) or not ids or not all(isinstance(name, str) for name in ids):
        raise BadInput("must be a list of ids", field="ids")
    existing_ids = await service.existing_ids(ids, _tag(request))
    deleted = await service.forget_ids(sorted(existing_ids), _tag(request)) if existing_ids else []
    # The evidence is deleted with a memory, but the caller did not name it.
    matches = [match for match in deleted if match["id"] in existing_ids]
    errors = [{"id": name, "error": "Memory not found"} for name in ids if name not in existing_ids]
    return {"count": len(matches), "matches": matches, "errors": errors}


async def _namespace_forget_matching(request: Request, service: FileDocuments) -> Any:
    body = await _read_deletion(request, "query", "dryRun")
    query = body.get("query")
    if not isinstance(query, str) or not query:
        raise BadInput("must be a text", field="query")
    matches = await service.forget_matching(query, _tag(request) or "", dry_run=bool(body.get("dryRun")))
    return {"count": len(matches), "matches": matches, "errors": []}


async def _settings(request: Request, service: FileDocuments) -> Any:
    return await service.settings()


async def _change_settings(request: Request, service: FileDocuments) -> Any:
    return await service.change_settings(await read_object(request))


OPERATIONS: tuple[Operation, ...] = (
    ("POST", "/v3/documents", _add),
    ("POST", "/v3/documents/batch", _add_batch),
    ("POST", "/v3/documents/list", _list),
    ("GET", "/v3/documents/processing", _processing),
    ("DELETE", "/v3/documents/bulk", _delete_many),
    ("POST", "/v3/documents/file", _add_file),
    ("GET", "/v3/documents/{name}", _get),
    ("PATCH", "/v3/documents/{name}", _change),
    ("DELETE", "/v3/documents/{name}", _delete),
    ("GET", "/v3/settings", _settings),
    ("PATCH", "/v3/settings", _change_settings),
    ("POST", "/v3/search", _search_documents),
    ("POST", "/v4/search", _search),
    ("POST", "/v4/profile", _profile),
    ("POST", "/v4/conversations", _converse),
    ("POST", "/v4/memories", _create),
    ("PATCH", "/v4/memories", _change_memory),
    ("DELETE", "/v4/memories", _forget),
    ("GET", "/ns/{namespace}", _container),
    ("PATCH", "/ns/{namespace}", _change_container),
    ("DELETE", "/ns/{namespace}", _delete_container),
    ("POST", "/ns/{namespace}/document", _add),
    ("POST", "/ns/{namespace}/document/file", _add_file),
    ("POST", "/ns/{namespace}/document/batch", _add_batch),
    ("GET", "/ns/{namespace}/document/{name}", _get),
    ("PATCH", "/ns/{namespace}/document/{name}", _change),
    ("DELETE", "/ns/{namespace}/document", _namespace_delete),
    ("POST", "/ns/{namespace}/search", _namespace_search),
    ("POST", "/ns/{namespace}/profile", _namespace_profile),
    ("POST", "/ns/{namespace}/list/{kind}", _namespace_list),
    ("GET", "/ns/{namespace}/memories/{name}", _namespace_memory),
    ("DELETE", "/ns/{namespace}/memories", _namespace_forget),
    ("DELETE", "/ns/{namespace}/memories/semantic", _namespace_forget_matching),
)
_UNSUPPORTED = ("/v3/connections/{rest:path}", "/connectors", "/v3/settings", "/v3/settings/{rest:path}", "/v3/projects/{rest:path}",
                "/v3/container-tags/{rest:path}", "/v4/{rest:path}", "/ns", "/ns/{rest:path}", "/organization", "/feedback")  # fmt: skip

_API = CompatApi(
    operations=OPERATIONS,
    unsupported=_UNSUPPORTED,
    answer=_answer,
    error_field="error",
)
routes = _API.routes
