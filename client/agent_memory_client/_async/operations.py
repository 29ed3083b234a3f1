"""One method per call of the REST API that agents make: sessions, memories, search and prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from agent_memory_client._answers import Acknowledgement, PromptAnswer, acknowledged, add_up, parse, parse_object, parse_prompt
from agent_memory_client._async.connection import Connection
from agent_memory_client._calls import MessageWait, Wait
from agent_memory_client.models import (
    AckResponse,
    AppendMessagesResponse,
    ClientMemoryRecord,
    CreatedAt,
    Entities,
    EventDate,
    Explanation,
    ExtractionStrategy,
    HealthCheckResponse,
    LastAccessed,
    MemoryMessage,
    MemoryPromptRequest,
    MemoryRecord,
    MemoryRecordResults,
    MemoryType,
    ModelNameLiteral,
    Namespace,
    RecencyConfig,
    SearchModeEnum,
    SearchRequest,
    SessionId,
    SessionListResponse,
    Topics,
    UserId,
    WorkingMemory,
    WorkingMemoryResponse,
)


class Operations(Connection):
    """Single calls: sessions, memories, search and prompts."""

    async def health_check(self) -> HealthCheckResponse:
        """The server's clock: the process answers. Says nothing about its engines."""
        return parse(HealthCheckResponse, await self._send(self._calls.health()))

    async def ready(self) -> dict[str, Any]:
        """What the server says about its engines. Raises MemoryUnavailableError (503) when one is away."""
        return parse_object(await self._send(self._calls.ready()))

    async def list_sessions(
        self, limit: int = 20, offset: int = 0, namespace: str | None = None, user_id: str | None = None
    ) -> SessionListResponse:
        """A page of session ids (`limit` 1 to 100)."""
        return parse(SessionListResponse, await self._send(self._calls.list_sessions(limit, offset, namespace, user_id)))

    async def get_working_memory(
        self,
        session_id: str,
        user_id: str | None = None,
        namespace: str | None = None,
        model_name: ModelNameLiteral | None = None,
        context_window_max: int | None = None,
        *,
        recent_messages_limit: int | None = None,
    ) -> WorkingMemoryResponse:
        """A session; with a model or a window (tokens) only the newest messages that fit. Raises MemoryNotFoundError."""
        window = self._calls.window(model_name, context_window_max)
        return parse(
            WorkingMemoryResponse, await self._send(self._calls.get_session(session_id, user_id, namespace, window, recent_messages_limit))
        )

    async def put_working_memory(
        self,
        session_id: str,
        memory: WorkingMemory,
        user_id: str | None = None,
        model_name: str | None = None,
        context_window_max: int | None = None,
        *,
        if_match: str | None = None,
    ) -> WorkingMemoryResponse:
        """Stores a session in place of what was there and returns it.

        `user_id` wins over the one in `memory`; `if_match` (an `ETag`) makes it fail with MemoryPreconditionFailedError when
        somebody else has changed the session since.
        """
        window = self._calls.window(model_name, context_window_max)
        condition = {} if if_match is None else {"If-Match": if_match}
        return parse(WorkingMemoryResponse, await self._send(self._calls.put_session(session_id, memory, user_id, window, condition)))

    async def append_messages(
        self,
        session_id: str,
        messages: Sequence[Mapping[str, Any] | MemoryMessage],
        namespace: str | None = None,
        model_name: str | None = None,
        context_window_max: int | None = None,
        user_id: str | None = None,
        wait: MessageWait = None,
    ) -> AppendMessagesResponse:
        """Adds messages to the end of a session, atomically; what the session holds is neither sent nor rewritten.

        A session that does not exist is made. Messages whose id it has already are skipped. With `wait` the answer comes when they are
        long-term memories ("promoted"), or found by meaning, too ("searchable"; also True, or seconds), or when the time is over: its
        `reached` says which.
        """
        window = self._calls.window(model_name, context_window_max)
        call = self._calls.append(session_id, messages, namespace, user_id, window, wait)
        return parse(AppendMessagesResponse, await self._send(call))

    async def flush_working_memory(
        self, session_id: str, namespace: str | None = None, user_id: str | None = None, wait: Wait = None
    ) -> Acknowledgement:
        """Lets the server do now what waits on a session: its promotion to long-term memory, its summary, its facts.

        With `wait` (seconds, or True for up to 10) it answers when that is done, or `pending` when it takes longer.
        """
        return acknowledged(await self._send(self._calls.flush_session(session_id, namespace, user_id, wait)))

    async def delete_working_memory(
        self,
        session_id: str,
        namespace: str | None = None,
        user_id: str | None = None,
        *,
        memories: bool = False,
        wait: Wait = None,
    ) -> Acknowledgement:
        """Deletes a session; one that does not exist is no error.

        With `memories` also the long-term memories that came from it, in the background: `wait` as in `flush_working_memory`.
        """
        return acknowledged(await self._send(self._calls.delete_session(session_id, namespace, user_id, memories, wait)))

    async def create_long_term_memory(
        self,
        memories: Sequence[ClientMemoryRecord | MemoryRecord],
        deduplicate: bool = True,
        *,
        wait: Wait = None,
        idempotency_key: str | None = None,
    ) -> Acknowledgement:
        """Stores memories; one with the id of a stored one replaces it.

        They can be read and found by words at once, by meaning a moment later; `wait` (seconds, or True for up to 10) waits for
        that, and the answer's `searchable` says whether it is so. The call is safe to repeat by itself; an `idempotency_key` of
        your own makes it so across processes, as long as the records are the same.
        """
        return acknowledged(await self._send(self._calls.create_memories(memories, deduplicate, wait, idempotency_key)))

    async def get_long_term_memory(
        self, memory_id: str, *, as_of: datetime | None = None, known_at: datetime | None = None, history: bool = False
    ) -> MemoryRecord:
        """A memory as it is; `as_of`: as it was true at a time; `known_at`: as the server knew it then. Raises MemoryNotFoundError.

        With `history` its last version, also when it is no longer current.
        """
        return parse(
            MemoryRecord, await self._send(self._calls.get_memory(memory_id, as_of=as_of, known_at=known_at, history=history or None))
        )

    async def edit_long_term_memory(self, memory_id: str, updates: dict[str, Any]) -> MemoryRecord:
        """Changes fields of a memory (None leaves one as it is) and returns it. Raises MemoryNotFoundError."""
        return parse(MemoryRecord, await self._send(self._calls.edit_memory(memory_id, updates)))

    async def delete_long_term_memories(self, memory_ids: Sequence[str]) -> AckResponse:
        """Deletes memories; the status counts those that existed."""
        return add_up([parse(AckResponse, await self._send(call)) for call in self._calls.delete_memories(memory_ids)])

    async def search_long_term_memory(
        self,
        text: str,
        search_mode: SearchModeEnum | str = SearchModeEnum.SEMANTIC,
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
        timezone: str | None = None,
        reference_time: datetime | None = None,
        explain: bool = False,
        min_trust: float | None = None,
    ) -> MemoryRecordResults:
        """A page of the memories that fit `text` best (`limit` 1 to 100); with an empty text, of all that the filters allow.

        `distance_threshold` is the largest cosine distance (0 to 2); `hybrid_alpha` (0 to 1) weighs meaning against words. A time
        that the text names ("last week") is read in `timezone` as seen from `reference_time`. With `explain` each hit says how it
        was scored; what is trusted less than `min_trust` (0 to 1) is left out.
        """
        filters: dict[str, Any] = {
            "session_id": session_id,
            "namespace": namespace,
            "topics": topics,
            "entities": entities,
            "created_at": created_at,
            "last_accessed": last_accessed,
            "user_id": user_id,
            "memory_type": memory_type,
            "extraction_strategy": extraction_strategy,
            "event_date": event_date,
        }
        body = self._calls.search_body(
            filters,
            recency,
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
        )
        return parse(MemoryRecordResults, await self._send(self._calls.search(body, optimize_query)))

    async def explain_long_term_memory(
        self,
        memory_id: str,
        search: SearchRequest | dict[str, Any] | None = None,
        *,
        prompt: MemoryPromptRequest | dict[str, Any] | None = None,
    ) -> Explanation:
        """Why a search, or a prompt, did not return a memory: which filter, rank, threshold or budget kept it out; or where it stands."""
        return parse(Explanation, await self._send(self._calls.explain(memory_id, search, prompt)))

    async def memory_prompt(
        self,
        query: str,
        session_id: str | None = None,
        namespace: str | None = None,
        model_name: str | None = None,
        context_window_max: int | None = None,
        long_term_search: dict[str, Any] | SearchRequest | bool | None = None,
        user_id: str | None = None,
        optimize_query: bool = False,
    ) -> PromptAnswer:
        """Messages ready for a chat model: a session (its summary and newest messages) and the memories that fit `query`.

        Give a session, a search, or both. The answer is a dict (`answer["messages"]`) with attributes (`answer.messages`);
        `answer.to_openai()` is what a chat completion takes.
        """
        window = self._calls.window(model_name, context_window_max)
        call = self._calls.prompt(query, session_id, namespace, user_id, window, long_term_search, optimize_query)
        return parse_prompt(await self._send(call))
