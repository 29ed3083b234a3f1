"""Long-term memories."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from agent_memory_client._wire.answers import Acknowledgement, add_up, parse, parse_acknowledgement
from agent_memory_client._wire.checks import as_records
from agent_memory_client._wire.requests import (
    Call,
    Wait,
    as_body,
    checked,
    idempotency_headers,
    omit_none,
    query,
    search_body,
    segment,
    short_queries,
    wait_seconds,
    within,
)
from agent_memory_client.errors import MemoryValidationError
from agent_memory_client.models import (
    MAX_SEARCH_OFFSET,
    AckResponse,
    ClientMemoryRecord,
    Condition,
    CreatedAt,
    Entities,
    EventDate,
    Explanation,
    ExtractionStrategy,
    ForgetMemoryRequest,
    ForgetMemoryResponse,
    ForgetPolicy,
    ForgetResponse,
    ForgettingResponse,
    ForgetUndoResponse,
    LastAccessed,
    MemoryEvidence,
    MemoryHistory,
    MemoryPromptRequest,
    MemoryRecord,
    MemoryRecordResult,
    MemoryRecordResults,
    MemoryType,
    MetadataFilter,
    Namespace,
    PurgeRequest,
    PurgeResponse,
    RecencyConfig,
    SearchModeEnum,
    SearchRequest,
    SessionId,
    TagFilter,
    Topics,
    UserId,
    WrittenBy,
)
from agent_memory_client.resources.base import Resource

COMPACTION_SECONDS = 20.0
"""Seconds that the server waits for a compaction before it returns `pending`."""

_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_FORGET = "/v1/memory/forget"
_PATH = "/v1/long-term-memory"


class Memories(Resource):
    """Store, search, change and delete long-term memories."""

    async def create(
        self,
        memories: Sequence[ClientMemoryRecord | MemoryRecord | Mapping[str, Any]],
        deduplicate: bool = True,
        *,
        wait: Wait = None,
        idempotency_key: str | None = None,
    ) -> Acknowledgement:
        """Store memories (records or dicts), replacing existing memories with the same ids.

        Keyword search can find the memories immediately, and semantic search a moment later. `wait`
        (seconds, or True for up to 10) waits for semantic search, and the response's `searchable`
        is True on success. The call is safe to repeat. To repeat it from another process, pass the
        same records and your own `idempotency_key`. Raises MemoryConflictError if an id belongs to
        another owner.
        """
        namespace = self._config.default_namespace
        bodies = [record.model_dump(mode="json", exclude_none=True, by_alias=True) for record in as_records(memories)]
        if namespace is not None:
            bodies = [{"namespace": namespace, **body} for body in bodies]
        call = Call(
            "POST",
            f"{_PATH}/",
            query(wait=wait),
            {"memories": bodies, "deduplicate": deduplicate},
            idempotency_headers(idempotency_key),
            wait=wait_seconds(wait),
        )
        return parse_acknowledgement(await self._send(call))

    async def create_batches(
        self,
        memory_batches: Sequence[Sequence[ClientMemoryRecord | MemoryRecord | Mapping[str, Any]]],
        batch_size: int = 100,
        delay_between_batches: float = 0.1,
    ) -> list[AckResponse]:
        """Store memories in batches of at most `batch_size`, and return the responses.

        `delay_between_batches` is the pause between requests in seconds.
        """
        if batch_size < 1:
            raise MemoryValidationError(f"batch_size: must be at least 1, got {batch_size}")
        chunks = [batch[start : start + batch_size] for batch in memory_batches for start in range(0, len(batch), batch_size)]
        answers: list[AckResponse] = []
        for chunk in chunks:
            if answers and delay_between_batches > 0:
                await asyncio.sleep(delay_between_batches)
            answers.append(await self.create(chunk))
        return answers

    async def get(
        self, memory_id: str, *, as_of: datetime | None = None, known_at: datetime | None = None, history: bool = False
    ) -> MemoryRecord:
        """Return the current version of a memory.

        `as_of` selects the version valid at that time, and `known_at` the version known at that
        time. With `history`, the last version is returned even if it is no longer current. Raises
        MemoryNotFoundError.
        """
        params = query(as_of=as_of, known_at=known_at, history=history or None)
        return await self._read(MemoryRecord, Call("GET", _path(memory_id), params))

    async def edit(self, memory_id: str, updates: dict[str, Any]) -> MemoryRecord:
        """Change the given fields of a memory and return the memory.

        None clears an optional field. Raises MemoryNotFoundError.
        """
        return await self._read(MemoryRecord, Call("PATCH", _path(memory_id), json=as_body(updates)))

    async def delete(self, memory_ids: Sequence[str]) -> AckResponse:
        """Delete memories. The status includes the number deleted. Raises MemoryServerError."""
        calls = [Call("DELETE", _PATH, {"memory_ids": ids}) for ids in short_queries(memory_ids)]
        return add_up([parse(AckResponse, await self._send(call)) for call in calls])

    async def search(
        self,
        text: str,
        search_mode: SearchModeEnum | str | None = None,
        hybrid_alpha: float | None = None,
        text_scorer: str | None = None,
        session_id: SessionId | dict[str, Any] | None = None,
        namespace: Namespace | dict[str, Any] | None = None,
        topics: Topics | dict[str, Any] | None = None,
        entities: Entities | dict[str, Any] | None = None,
        created_at: CreatedAt | dict[str, Any] | None = None,
        last_accessed: LastAccessed | dict[str, Any] | None = None,
        user_id: UserId | dict[str, Any] | None = None,
        distance_threshold: float | None = None,
        memory_type: MemoryType | dict[str, Any] | None = None,
        extraction_strategy: ExtractionStrategy | dict[str, Any] | None = None,
        recency: RecencyConfig | None = None,
        limit: int = 10,
        offset: int = 0,
        optimize_query: bool = False,
        *,
        event_date: EventDate | dict[str, Any] | None = None,
        agent_id: TagFilter | dict[str, Any] | None = None,
        timezone: str | None = None,
        reference_time: datetime | None = None,
        explain: bool = False,
        min_trust: float | None = None,
        min_relevance: float | None = None,
        slot: TagFilter | dict[str, Any] | None = None,
        category: TagFilter | dict[str, Any] | None = None,
        source_class: TagFilter | dict[str, Any] | None = None,
        written_by: WrittenBy | dict[str, Any] | None = None,
        metadata: dict[str, MetadataFilter] | dict[str, dict[str, Any]] | None = None,
        filter: Condition | dict[str, Any] | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        history: bool = False,
        distinct: bool = False,
        quarantined: bool = False,
    ) -> MemoryRecordResults:
        """Return a page of memories that match `text`, or of all memories if `text` is empty.

        `limit` is 1 to 100. By default, the search combines meaning and keywords.
        `distance_threshold` is the maximum cosine distance (0 to 2). `hybrid_alpha` weighs keywords
        (0) against meaning (1). `timezone` and `reference_time` are used to resolve times in the
        text ("last week"). `explain` adds a score breakdown to each result. `min_trust` and
        `min_relevance` (0 to 1) exclude memories with lower values. See `SearchRequest` for the
        other options.
        """
        body = search_body(
            self._config.default_namespace,
            recency,
            session_id=session_id,
            namespace=namespace,
            topics=topics,
            entities=entities,
            created_at=created_at,
            last_accessed=last_accessed,
            user_id=user_id,
            memory_type=memory_type,
            extraction_strategy=extraction_strategy,
            event_date=event_date,
            agent_id=agent_id,
            text=text,
            search_mode=search_mode,
            hybrid_alpha=hybrid_alpha,
            text_scorer=text_scorer,
            distance_threshold=distance_threshold,
            limit=limit,
            offset=offset,
            timezone=timezone,
            reference_time=reference_time,
            explain=explain or None,
            min_trust=min_trust,
            min_relevance=min_relevance,
            slot=slot,
            category=category,
            source_class=source_class,
            written_by=written_by,
            metadata=metadata,
            filter=filter,
            as_of=as_of,
            known_at=known_at,
            history=history or None,
            distinct=distinct or None,
            quarantined=quarantined or None,
        )
        return await self._read(MemoryRecordResults, Call("POST", f"{_PATH}/search", query(optimize_query=optimize_query), body))

    async def search_all(
        self,
        text: str,
        session_id: SessionId | dict[str, Any] | None = None,
        namespace: Namespace | dict[str, Any] | None = None,
        topics: Topics | dict[str, Any] | None = None,
        entities: Entities | dict[str, Any] | None = None,
        created_at: CreatedAt | dict[str, Any] | None = None,
        last_accessed: LastAccessed | dict[str, Any] | None = None,
        user_id: UserId | dict[str, Any] | None = None,
        distance_threshold: float | None = None,
        memory_type: MemoryType | dict[str, Any] | None = None,
        batch_size: int = 50,
    ) -> AsyncIterator[MemoryRecordResult]:
        """Yield all search results, fetching pages of `batch_size` (1 to 100)."""
        offset: int | None = 0
        while offset is not None:
            page = await self.search(
                text,
                session_id=session_id,
                namespace=namespace,
                topics=topics,
                entities=entities,
                created_at=created_at,
                last_accessed=last_accessed,
                user_id=user_id,
                distance_threshold=distance_threshold,
                memory_type=memory_type,
                limit=batch_size,
                offset=offset,
            )
            for memory in page.memories:
                yield memory
            if page.next_offset is not None and page.next_offset > offset:
                offset = page.next_offset
            else:
                # The archived server sends no `next_offset`, so a full page may have a next page.
                following = offset + batch_size
                offset = following if len(page.memories) >= batch_size and following <= MAX_SEARCH_OFFSET else None

    async def explain(
        self,
        memory_id: str,
        search: SearchRequest | dict[str, Any] | None = None,
        *,
        prompt: MemoryPromptRequest | dict[str, Any] | None = None,
    ) -> Explanation:
        """Explain why a search or prompt did or did not return a memory."""
        if prompt is not None:
            body: dict[str, Any] = {"memory_id": memory_id, "prompt": as_body(prompt)}
        else:
            body = {"memory_id": memory_id, "search": within(as_body(search or {}), self._config.default_namespace)}
        return await self._read(Explanation, Call("POST", f"{_PATH}/explain", json=body))

    async def evidence(self, memory_id: str) -> MemoryEvidence:
        """Return a memory's evidence, with any source messages that are still stored.

        Raises MemoryNotFoundError.
        """
        return await self._read(MemoryEvidence, Call("GET", f"{_path(memory_id)}/evidence"))

    async def history(self, memory_id: str) -> MemoryHistory:
        """Return a memory's changes and versions, newest first. Raises MemoryNotFoundError."""
        return await self._read(MemoryHistory, Call("GET", f"{_path(memory_id)}/history"))

    async def compact(self, namespace: str | None = None, user_id: str | None = None) -> Acknowledgement:
        """Merge duplicate memories. The status includes the number of remaining memories.

        If this takes longer than 20 seconds, the response is `pending`.
        """
        params = query(namespace=namespace, user_id=user_id)
        call = Call("POST", f"{_PATH}/compact", params, headers=idempotency_headers(), wait=COMPACTION_SECONDS)
        return parse_acknowledgement(await self._send(call))

    async def forget(
        self,
        policy: ForgetPolicy | Mapping[str, Any],
        namespace: str | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        limit: int | None = None,
        dry_run: bool = False,
        pinned_ids: list[str] | None = None,
    ) -> ForgetResponse:
        """Delete the memories that `policy` selects. With `dry_run`, only list them.

        A retry returns the first report.
        """
        body: dict[str, Any] = {"policy": as_body(policy)} | ({"pinned_ids": list(pinned_ids)} if pinned_ids else {})
        params = query(namespace=namespace, user_id=user_id, session_id=session_id, limit=limit, dry_run=dry_run)
        return await self._read(ForgetResponse, Call("POST", f"{_PATH}/forget", params, body, idempotency_headers()))

    async def forget_by_request(
        self,
        text: str | None = None,
        *,
        ids: list[str] | None = None,
        user_id: str | None = None,
        namespace: str | None = None,
        session_id: str | None = None,
        dry_run: bool = False,
    ) -> ForgetMemoryResponse:
        """Forget facts by description (`text`) or by `ids`, and delete the messages they came from.

        The call covers a user's memories in `namespace`. If `namespace` is None, it covers all
        namespaces, even if the client has a default. If the request is ambiguous, nothing is
        deleted, and the response lists the candidates. To undo the call, pass its `receipt_id` to
        `undo_forget` before `undo_until`.
        """
        values = omit_none(text=text, ids=ids, user_id=user_id, namespace=namespace, session_id=session_id, dry_run=dry_run)
        body = as_body(checked(ForgetMemoryRequest, **values))
        # Sent only once: a second request would find nothing, and the first request's receipt would be lost.
        return await self._read(ForgetMemoryResponse, Call("POST", _FORGET, {}, body, idempotent=False))

    async def get_forgotten(self, receipt_id: str) -> ForgettingResponse:
        """Return what a `forget_by_request` call deleted, or what was restored if it was undone.

        Raises MemoryNotFoundError after the deadline.
        """
        return await self._read(ForgettingResponse, Call("GET", f"{_FORGET}/{segment('receipt_id', receipt_id)}"))

    async def undo_forget(self, receipt_id: str) -> ForgetUndoResponse:
        """Undo a `forget_by_request` call. Idempotent.

        Raises MemoryNotFoundError after the deadline.
        """
        return await self._read(ForgetUndoResponse, Call("POST", f"{_FORGET}/{segment('receipt_id', receipt_id)}/undo"))

    async def purge(
        self,
        source: PurgeRequest | Mapping[str, Any],
        namespace: str | None = None,
        user_id: str | None = None,
        *,
        dry_run: bool = True,
        wait: Wait = True,
    ) -> PurgeResponse:
        """Delete the memories from a source, and the memories derived only from them.

        With `dry_run`, these memories are only counted. The call covers a user's memories in
        `namespace`. If `namespace` is None, it covers all namespaces, even if the client has a
        default. If the purge takes longer than `wait` (seconds, or True for up to 10), the response
        is `pending`. In that case, pass its `operation_id` to `jobs.get` later. The call is safe to
        repeat.
        """
        seconds = wait_seconds(wait)
        params = query(namespace=namespace, user_id=user_id, dry_run=dry_run, wait=seconds)
        return await self._read(PurgeResponse, Call("POST", f"{_PATH}/purge", params, as_body(source), wait=seconds))

    def validate(self, memory: ClientMemoryRecord | MemoryRecord) -> None:
        """Raise MemoryValidationError if the record is invalid or its id is not a ULID.

        Does not send a request.
        """
        checked(MemoryRecord, **memory.model_dump())
        if not _ULID.fullmatch(memory.id):
            raise MemoryValidationError(f"id: must be a ULID (26 characters of Crockford's base 32), got {memory.id!r}")

    def validate_search(self, **filters: Any) -> None:
        """Raise MemoryValidationError if the search parameters are invalid.

        Does not send a request.
        """
        if unknown := sorted(set(filters) - set(SearchRequest.model_fields)):
            raise MemoryValidationError(f"{', '.join(unknown)}: no search parameter, use {', '.join(SearchRequest.model_fields)}")
        checked(SearchRequest, **filters)


def _path(memory_id: str) -> str:
    return f"{_PATH}/{segment('memory_id', memory_id)}"
