"""What is made of several calls.

Changes of a session that the server has no single call for are read, changed and written back under the session's version
(`ETag`, `If-Match`): when somebody else was faster, they start again from what is stored now, so that no change is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from agent_memory_client._answers import PromptAnswer, parse
from agent_memory_client._async.administration import Administration
from agent_memory_client._async.keys import Keys
from agent_memory_client._async.operations import Operations
from agent_memory_client._async.persons import Persons
from agent_memory_client._checks import Checks, new_session
from agent_memory_client._merging import MergeStrategy, merge_data
from agent_memory_client.errors import (
    MemoryNotFoundError,
    MemoryPreconditionFailedError,
    MemoryValidationError,
)
from agent_memory_client.models import (
    MAX_SEARCH_OFFSET,
    AckResponse,
    ClientMemoryRecord,
    CreatedAt,
    Entities,
    LastAccessed,
    MemoryMessage,
    MemoryRecord,
    MemoryRecordResult,
    MemoryStrategyConfig,
    MemoryType,
    ModelNameLiteral,
    Namespace,
    RecencyConfig,
    SearchModeEnum,
    SessionId,
    Topics,
    UserId,
    WorkingMemory,
    WorkingMemoryResponse,
    new_id,
)

MAX_CHANGE_ATTEMPTS = 10

_Change: TypeAlias = Callable[[WorkingMemory], dict[str, Any]]


class Composites(Operations, Administration, Persons, Keys, Checks):
    """Single calls, and what is made of several."""

    async def get_or_create_working_memory(
        self,
        session_id: str,
        user_id: str | None = None,
        namespace: str | None = None,
        model_name: ModelNameLiteral | None = None,
        context_window_max: int | None = None,
        long_term_memory_strategy: MemoryStrategyConfig | None = None,
    ) -> tuple[bool, WorkingMemoryResponse]:
        """`(created, session)`: the session, which is made empty when it does not exist."""
        try:
            found = await self.get_working_memory(session_id, user_id, namespace, model_name, context_window_max)
        except MemoryNotFoundError:
            pass
        else:
            # Servers before 0.12 answer a missing session with an empty one that says it was never saved.
            if found.unsaved is not True:
                return False, found
        memory = new_session(session_id, namespace, user_id, data={}, long_term_memory_strategy=long_term_memory_strategy)
        return True, await self.put_working_memory(session_id, memory, user_id, model_name, context_window_max)

    async def append_messages_to_working_memory(
        self,
        session_id: str,
        messages: Sequence[Mapping[str, Any] | MemoryMessage],
        namespace: str | None = None,
        model_name: str | None = None,
        context_window_max: int | None = None,
        user_id: str | None = None,
    ) -> WorkingMemoryResponse:
        """Adds messages to the end of a session, atomically, and returns the session as it is then.

        Without a `user_id` they go where a read without one finds the session, which may belong to a user. That is a look, the
        append and a read; `append_messages` is the append alone, to exactly the scope that is given.
        """
        if not messages:
            _, session = await self.get_or_create_working_memory(session_id, user_id, namespace, model_name, context_window_max)
            return session
        if user_id is None:
            try:
                found = await self.get_working_memory(session_id, None, namespace, recent_messages_limit=1)
            except MemoryNotFoundError:
                pass
            else:
                namespace, user_id = found.namespace, found.user_id
        done = await self.append_messages(session_id, messages, namespace, model_name, context_window_max, user_id)
        return await self.get_working_memory(session_id, done.user_id, done.namespace, model_name, context_window_max)

    async def set_working_memory_data(
        self, session_id: str, data: dict[str, Any], namespace: str | None = None, preserve_existing: bool = True
    ) -> WorkingMemoryResponse:
        """Replaces a session's `data`. Without `preserve_existing` the whole session is replaced by one that has only this."""
        if not preserve_existing:
            return await self.put_working_memory(session_id, new_session(session_id, namespace, None, data=data))
        return await self._change(session_id, namespace, None, lambda _: {"data": data})

    async def update_working_memory_data(
        self,
        session_id: str,
        data_updates: dict[str, Any],
        namespace: str | None = None,
        merge_strategy: MergeStrategy = "merge",
        user_id: str | None = None,
    ) -> WorkingMemoryResponse:
        """Updates a session's `data`: `merge` sets keys, `deep_merge` also inside objects, `replace` replaces all of it."""
        merge_data(None, {}, merge_strategy)
        return await self._change(
            session_id, namespace, user_id, lambda session: {"data": merge_data(session.data, data_updates, merge_strategy)}
        )

    async def add_memories_to_working_memory(
        self,
        session_id: str,
        memories: Sequence[ClientMemoryRecord | MemoryRecord],
        namespace: str | None = None,
        replace: bool = False,
        *,
        user_id: str | None = None,
    ) -> WorkingMemoryResponse:
        """Adds structured memories to a session (one of a known id takes the place of the stored one), or replaces all of them."""
        added = [memory if memory.id else memory.model_copy(update={"id": new_id()}) for memory in memories]
        ids = {memory.id for memory in added}

        def change(session: WorkingMemory) -> dict[str, Any]:
            kept = [] if replace else [memory for memory in session.memories if memory.id not in ids]
            return {"memories": [*kept, *added]}

        return await self._change(session_id, namespace, user_id, change)

    async def _change(self, session_id: str, namespace: str | None, user_id: str | None, change: _Change) -> WorkingMemoryResponse:
        """Writes a session back with the fields that `change` returns for what is stored (an empty session if there is none).

        The session is read without a model or window: a view that leaves messages out must not be written back.
        """
        for attempt in range(1, MAX_CHANGE_ATTEMPTS + 1):
            try:
                response = await self._send(self._calls.get_session(session_id, user_id, namespace))
            except MemoryNotFoundError:
                session: WorkingMemory = new_session(session_id, self._calls.namespace(namespace), user_id)
                condition = {"If-None-Match": "*"}
            else:
                session = parse(WorkingMemoryResponse, response)
                condition = {"If-Match": response.headers["ETag"]} if "ETag" in response.headers else {}
            changed = session.model_copy(update=change(session))
            call = self._calls.put_session(session_id, changed, session.user_id, {}, condition)
            try:
                return parse(WorkingMemoryResponse, await self._send(call))
            except MemoryPreconditionFailedError:
                if attempt == MAX_CHANGE_ATTEMPTS:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def promote_working_memories_to_long_term(
        self, session_id: str, memory_ids: Sequence[str] | None = None, namespace: str | None = None
    ) -> AckResponse:
        """Stores a session's structured memories (all, or those of `memory_ids`) as long-term memories now.

        The server does that by itself in the background; records keep their ids, so doing both stores nothing twice. They take
        over the session's scope where they have none.
        """
        session = parse(WorkingMemoryResponse, await self._send(self._calls.get_session(session_id, None, namespace)))
        scope = {"namespace": session.namespace, "user_id": session.user_id, "session_id": session_id}
        chosen = [
            memory.model_copy(update={key: value for key, value in scope.items() if getattr(memory, key) is None})
            for memory in session.memories
            if memory_ids is None or memory.id in memory_ids
        ]
        return await self.create_long_term_memory(chosen) if chosen else AckResponse(status="ok")

    async def bulk_create_long_term_memories(
        self,
        memory_batches: Sequence[Sequence[ClientMemoryRecord | MemoryRecord]],
        batch_size: int = 100,
        delay_between_batches: float = 0.1,
    ) -> list[AckResponse]:
        """Stores many memories in requests of at most `batch_size`, with a pause (seconds) between them; one answer per request."""
        if batch_size < 1:
            raise MemoryValidationError(f"batch_size: must be at least 1, got {batch_size}")
        chunks = [batch[start : start + batch_size] for batch in memory_batches for start in range(0, len(batch), batch_size)]
        answers: list[AckResponse] = []
        for chunk in chunks:
            if answers and delay_between_batches > 0:
                await asyncio.sleep(delay_between_batches)
            answers.append(await self.create_long_term_memory(chunk))
        return answers

    async def search_all_long_term_memories(
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
        """Yields everything that a search finds, page after page of `batch_size` (1 to 100)."""
        offset: int | None = 0
        while offset is not None:
            page = await self.search_long_term_memory(
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
                # The archived server never says where the next page begins: there a full page may have a successor.
                following = offset + batch_size
                offset = following if len(page.memories) >= batch_size and following <= MAX_SEARCH_OFFSET else None

    async def hydrate_memory_prompt(
        self,
        query: str,
        session_id: dict[str, Any] | None = None,
        namespace: dict[str, Any] | None = None,
        topics: dict[str, Any] | None = None,
        entities: dict[str, Any] | None = None,
        created_at: dict[str, Any] | None = None,
        last_accessed: dict[str, Any] | None = None,
        user_id: dict[str, Any] | None = None,
        distance_threshold: float | None = None,
        memory_type: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        optimize_query: bool = False,
        search_mode: SearchModeEnum | str = SearchModeEnum.SEMANTIC,
        hybrid_alpha: float | None = None,
        text_scorer: str | None = None,
        event_date: dict[str, Any] | None = None,
        recency_boost: bool | None = None,
        recency_semantic_weight: float | None = None,
        recency_recency_weight: float | None = None,
        recency_freshness_weight: float | None = None,
        recency_novelty_weight: float | None = None,
        recency_half_life_last_access_days: float | None = None,
        recency_half_life_created_days: float | None = None,
        server_side_recency: bool | None = None,
    ) -> PromptAnswer:
        """A prompt of long-term memories alone: those that fit `query` and the filters."""
        filters: dict[str, Any] = {
            "session_id": session_id,
            "namespace": namespace,
            "topics": topics,
            "entities": entities,
            "created_at": created_at,
            "last_accessed": last_accessed,
            "user_id": user_id,
            "memory_type": memory_type,
            "event_date": event_date,
        }
        recency = RecencyConfig(
            recency_boost=recency_boost,
            semantic_weight=recency_semantic_weight,
            recency_weight=recency_recency_weight,
            freshness_weight=recency_freshness_weight,
            novelty_weight=recency_novelty_weight,
            half_life_last_access_days=recency_half_life_last_access_days,
            half_life_created_days=recency_half_life_created_days,
            server_side_recency=server_side_recency,
        )
        search = self._calls.search_body(
            filters,
            recency,
            limit=limit,
            offset=offset,
            search_mode=search_mode,
            hybrid_alpha=hybrid_alpha,
            text_scorer=text_scorer,
            distance_threshold=distance_threshold,
        )
        return await self.memory_prompt(query, long_term_search=search, optimize_query=optimize_query)
