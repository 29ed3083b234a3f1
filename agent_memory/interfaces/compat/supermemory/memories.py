"""Implement Supermemory's operations on memories and profiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from agent_memory.extensions.profile.service import ProfileService
from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.followers import MemoryFollowers
from agent_memory.features.privacy.forget.service import ForgetService
from agent_memory.foundation.api.principals import writing
from agent_memory.foundation.core.errors import BadInput, NotFound
from agent_memory.foundation.llm.profiles import profile_of
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.text.normalization import ABOUT_USER, QUESTION
from agent_memory.interfaces.compat.service import MAX_PAGE, CompatService, check_filter_size, similarity_of
from agent_memory.interfaces.compat.supermemory.answers import TAGS, raw_similarity
from agent_memory.interfaces.compat.supermemory.filters import condition_of, text_keys
from agent_memory.interfaces.compat.supermemory.requests import ChangedMemory, DocumentListing, NamedMemory, NewMemories, Search
from agent_memory_client.models import (
    CreateMemoryRecordRequest,
    EditMemoryRecordRequest,
    ForgetMemoryRequest,
    ForgetMemoryResponse,
    MemoryRecord,
    MemoryRecordResult,
)
from agent_memory_client.models.features.profile import Profile

# Without a model that extracts facts, users' statements and notes count as memories.
_STATEMENTS: tuple[dict[str, Any], ...] = (
    {"not": {"metadata": {"role": {"any": ["assistant", "tool", "system", "developer"]}}}},
    {"not": {"metadata": {QUESTION: {"eq": True}, ABOUT_USER: {"exists": False}}}},
)
# Filters are applied to at most this many memories or messages.
MOST_LOOKED_THROUGH = 5_000
_MOST_TEXT_KEYS = 4
# Optional fields of a change, with the names that this server uses.
_CHANGEABLE = {"metadata": "metadata", "forget_after": "expires_at", "temporal_context": "event_date"}


class MemoryOperations(CompatService):
    """Operations on memories for one caller."""

    product = "supermemory"

    async def search(self, request: Search) -> list[tuple[MemoryRecordResult, bool]]:
        """Return the best hits. Each has a flag that is true for messages."""
        condition = await self._selection(request.tags(), request.given_filters)
        as_chunks = request.search_mode == "documents"
        # Without a model that extracts facts, messages count as memories.
        if request.search_mode == "memories" or (as_chunks and self._runtime.extracts):
            condition += self._kind(chunks=as_chunks)
        condition += [{"session_id": {"eq": request.doc_id}}] if request.doc_id else []
        results = await self._search(
            filter={"and": condition} if condition else None,
            text=request.q,
            search_mode="hybrid",
            limit=min(request.limit, MAX_PAGE),
            explain=True,
        )
        hits, scale = results.memories, profile_of(self._runtime.embedder.model).scale
        # Callers use the thresholds of the hosted product.
        scores = await run_in_thread(
            lambda: [scale.score(raw_similarity(hit, request.q)) for hit in hits], sum([len(hit.text) for hit in hits])
        )
        for hit, score in zip(hits, scores, strict=True):
            if hit.explanation is not None:
                hit.explanation.similarity = score
        least = request.threshold if request.threshold is not None else request.chunk_threshold
        if least is not None:
            hits = [hit for hit in hits if similarity_of(hit) >= least]
        # Sort by similarity, because programs take the first hit as the nearest.
        hits = sorted(hits, key=similarity_of, reverse=True)
        both = self._runtime.extracts and request.search_mode == "hybrid"
        return [(hit, as_chunks or (both and hit.memory_type == "message")) for hit in hits]

    async def profile(self, tag: str | None) -> Profile:
        """Return a container's profile. Raises BadInput if there is no tag."""
        if not tag:
            raise BadInput("must be given", field="containerTag")
        return await self._services[ProfileService].read(self._scope, tag, self._namespace, limit=MAX_PAGE)

    async def memories(self, request: DocumentListing, *, chunks: bool = False) -> tuple[Sequence[MemoryRecord], int]:
        """Return a page of a container's memories, newest first, and the total count.

        If `chunks` is true, return messages instead.
        """
        size = min(request.limit, MAX_PAGE)
        condition = await self._selection(request.tags(), request.given_filters)
        condition += self._kind(chunks=chunks)
        condition += [{"session_id": {"eq": request.doc_id}}] if request.doc_id else []
        listed = await self._search(filter={"and": condition} if condition else None, limit=size, offset=(request.page - 1) * size)
        return listed.memories, listed.total

    async def create(self, request: NewMemories) -> list[dict[str, Any]]:
        """Store memories, and add them to the profile immediately. Return their ids and texts."""
        tags = request.tags()
        others = {TAGS: tags[1:]} if tags[1:] else {}
        body = CreateMemoryRecordRequest.model_validate(
            {
                "memories": [
                    {
                        "id": uuid4().hex,
                        "text": memory.content,
                        "namespace": self._namespace,
                        "user_id": request.user,
                        "metadata": {**(memory.metadata or {}), **others},
                    }
                    for memory in request.memories
                ],
                "deduplicate": False,
            }
        )
        scope, names = writing(self._scope), [record.id for record in body.memories]
        await self._services[MemoryService].create(scope, body)
        marks = self._services[OperationService].follow_marks(scope, names)
        await MemoryFollowers(self._services.followers).follow([mark.member for mark in marks])
        return [{"id": record.id, "memory": record.text} for record in body.memories]

    async def memory(self, name: str) -> MemoryRecord:
        """Return a memory. Raises NotFound."""
        return await self._services[MemoryService].get(self._scope, name)

    async def change_memory(self, request: ChangedMemory) -> MemoryRecord:
        """Change a memory's text and, optionally, its metadata and end time. Raises NotFound."""
        record = await self._named(request)
        event = request.temporal_context.event_date if request.temporal_context else None
        kept_metadata = {TAGS: record.metadata[TAGS]} if TAGS in record.metadata else {}
        fields = {
            "text": request.new_content,
            "metadata": {**(request.metadata or {}), **kept_metadata},
            "expires_at": request.forget_after,
            "event_date": event[0] if event else None,
        }
        # Null clears a field if the request contains it.
        changes = {"text"} | {field_name for request_name, field_name in _CHANGEABLE.items() if request_name in request.model_fields_set}
        body = EditMemoryRecordRequest.model_validate({key: value for key, value in fields.items() if key in changes})
        return await self._services[MemoryService].patch(writing(self._scope), record.id, body)

    async def forget(self, request: NamedMemory) -> str:
        """Forget a memory and its evidence, and return its id. This can be undone.

        Raises NotFound.
        """
        record = await self._named(request)
        await self.forget_ids([record.id], record.user_id)
        return record.id

    async def forget_ids(self, names: Sequence[str], user: str | None) -> list[dict[str, str]]:
        """Forget memories and their evidence, and return the deleted memories and messages."""
        return _deleted_memories(await self._forget({"ids": list(names), "user_id": user}))

    async def forget_matching(self, text: str, user: str, *, dry_run: bool) -> list[dict[str, str]]:
        """Forget memories that match a description, or only return them if `dry_run` is true.

        Ambiguous text is treated as a topic.
        """
        options = {"user_id": user, "dry_run": dry_run}
        forgotten = await self._forget({**options, "text": text})
        if forgotten.ambiguous:
            forgotten = await self._forget({**options, "text": f"everything about {text}"})
        return [] if forgotten.ambiguous else _deleted_memories(forgotten)

    async def existing_ids(self, names: Sequence[str], user: str | None) -> set[str]:
        """Return the ids in `names` that refer to memories in the container."""
        unique_ids = list(dict.fromkeys(names[:MAX_PAGE]))
        records = await self._services[MemoryStore].get(self._scope, unique_ids)
        return {name for name, record in zip(unique_ids, records, strict=True) if record is not None and record.user_id == user}

    async def versions(self, hits: Sequence[MemoryRecord]) -> dict[str, int]:
        """Map each memory's id to its version number, starting at 1."""
        numbers = await self._services[HistoryService].count_versions(self._scope, [hit.id for hit in hits])
        return {hit.id: number + len(hit.supersedes or ()) for hit, number in zip(hits, numbers, strict=True)}

    async def _forget(self, values: dict[str, Any]) -> ForgetMemoryResponse:
        request = ForgetMemoryRequest.model_validate({**values, "namespace": self._namespace})
        return await self._services[ForgetService].forget(writing(self._scope), request)

    async def _named(self, request: NamedMemory) -> MemoryRecord:
        tags = request.tags()
        if request.id:
            record = await self.memory(request.id)
            if tags and record.user_id != request.user:
                raise NotFound(f"Memory {request.id} not found", field="id")
            return record
        for hit, _ in await self.search(Search(q=request.content or "", container_tags=tags or None, limit=20, search_mode="hybrid")):
            if hit.text == request.content:
                return hit
        raise NotFound("no memory has this text", field="content")

    def _kind(self, *, chunks: bool) -> Sequence[dict[str, Any]]:
        return [{"memory_type": {"eq" if chunks else "ne": "message"}}] if chunks or self._runtime.extracts else _STATEMENTS

    async def _selection(self, tags: Sequence[str], filters: object) -> list[dict[str, Any]]:
        conditions: list[dict[str, Any]] = [{"user_id": {"eq": tags[0]}}] if tags else []
        conditions += [{"metadata": {TAGS: {"all": list(tags[1:])}}}] if tags[1:] else []
        check_filter_size(filters)
        keys = text_keys(filters)
        if len(keys) > _MOST_TEXT_KEYS:
            raise BadInput(f"may compare at most {_MOST_TEXT_KEYS} keys by parts of their texts", field="filters")
        condition = condition_of(filters, {key: await self._texts_under(key, conditions) for key in sorted(keys)})
        return conditions if condition is None else [*conditions, condition]

    async def _texts_under(self, key: str, conditions: Sequence[dict[str, Any]]) -> list[str]:
        """Return the distinct strings stored under a metadata key."""
        texts: dict[str, None] = {}
        having = {"and": [*conditions, {"metadata": {key: {"exists": True}}}]}
        async for page in self._pages(MOST_LOOKED_THROUGH, filter=having):
            for value in (hit.metadata.get(key) for hit in page):
                texts |= dict.fromkeys(text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str))
        return list(texts)


def _deleted_memories(forgotten: ForgetMemoryResponse) -> list[dict[str, str]]:
    return [{"id": match.id, "memory": match.text} for match in forgotten.matches if match.clear and match.kind in ("fact", "message")]
