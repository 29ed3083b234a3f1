"""Handle working memory requests without calling a model."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Protocol, TypeVar

from pydantic_core import from_json

from agent_memory.features.access.limits import MemoryLimit
from agent_memory.features.access.sizes import check_messages
from agent_memory.features.memories.annotations import check_annotations
from agent_memory.features.sessions.codec import SessionState, StoredMessage, with_beside
from agent_memory.features.sessions.former_messages import FormerMessages
from agent_memory.features.sessions.message_ids import notice_roles, stored_messages, with_distinct_ids, with_stable_ids
from agent_memory.features.sessions.pictures import notice_pictures
from agent_memory.features.sessions.session_write import NewMessage, SessionWrite
from agent_memory.features.sessions.store import SessionStore, TokenWindow
from agent_memory.features.sessions.strategies import check_strategy
from agent_memory.foundation.api.principals import list_place_of, permit_agent, session_of
from agent_memory.foundation.core.clock import from_micros, note_unreadable_dates
from agent_memory.foundation.core.errors import BadInput, NotFound
from agent_memory.foundation.core.ids import is_repeatable, made_id
from agent_memory.foundation.core.input.work import json_work, memories_work, messages_work
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.catalog import context_window
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.llm.tokens import TokenCounter, first_fitting
from agent_memory.foundation.storage.keyed_ids import KeyedIds
from agent_memory.foundation.text.chat_messages import OrderedMessage, counted, lacks_calls, whole_from
from agent_memory.foundation.text.pictures import words_of_files
from agent_memory.foundation.text.prompt_marks import own_words
from agent_memory_client.models import (
    ANSWER,
    AckResponse,
    AppendMessagesRequest,
    AppendMessagesResponse,
    MemoryMessage,
    MemoryRecord,
    MemoryTypeEnum,
    SessionIdentity,
    SessionListResponse,
    UpdateWorkingMemory,
    WorkingMemoryResponse,
    is_blank,
)

# How far back to search for the calls of tool answers, as a multiple of the requested messages.
_FAR = 8


@dataclass(slots=True)
class SessionAnswer:
    session: WorkingMemoryResponse
    version: int
    missing_timestamps: bool = False


class SessionService:
    def __init__(
        self,
        settings: Settings,
        store: SessionStore,
        counter: TokenCounter,
        memory_limit: MemoryLimit,
        ids: KeyedIds,
        former: FormerMessages,
        *,
        extracts: bool,
    ) -> None:
        self._settings = settings
        self._memory_limit = memory_limit
        self._store = store
        self._counter = counter
        self._ids = ids
        self._former = former
        self._extracts = extracts

    @property
    def promotes(self) -> bool:
        """True if messages become long-term memories."""
        return self._settings.longterm.enabled and self._settings.longterm.promote_messages

    async def put(
        self,
        scope: Scope,
        session_id: str,
        body: UpdateWorkingMemory,
        *,
        user_id: str | None = None,
        namespace: str | None = None,
        model_name: str | None = None,
        context_window_max: int | None = None,
        if_match: str | None = None,
        shown_as_semantic: bool = False,
    ) -> SessionAnswer:
        """Replace a session. The body's namespace and user take precedence over the arguments.

        If `shown_as_semantic` is true, procedural memories that the caller sends back as semantic
        remain procedural. Raises BadInput, VersionMismatch, Forbidden or IdTaken.
        """
        ref = session_of(scope, session_id, body.namespace or namespace, body.user_id or user_id)
        permit_agent(scope, body.agent_id)
        work = messages_work(body.messages) + memories_work(body.memories) + json_work(body.data)

        def prepare() -> tuple[bool, list[MemoryMessage], list[MemoryMessage], list[MemoryRecord]]:
            timed = self._check_session(scope, body)
            identified = with_stable_ids(body.messages)
            return timed, identified, with_distinct_ids(identified), [self._with_stable_id(ref, record) for record in body.memories]

        timed, identified, distinct, memories = await run_in_thread(prepare, work)
        messages = await self._new(distinct, scope.actor)
        if shown_as_semantic and any(record.memory_type is MemoryTypeEnum.SEMANTIC for record in memories):
            memories = _with_stored_types(memories, await self._store.procedural_memories(scope, ref))
        waiting = (
            [position for position, record in enumerate(memories) if record.persisted_at is None] if self._settings.longterm.enabled else []
        )
        await self._room(scope, body.messages, len(waiting))
        # A default time must not count as a time given by the caller.
        named = body.model_fields_set
        change = SessionWrite(
            mode="put",
            messages=messages,
            distinct_ids=True,
            context=body.context or None,
            context_tokens=await self._counter.count_in_thread(body.context) if body.context else 0,
            data=body.data,
            memories=memories,
            waiting=waiting,
            strategy=body.long_term_memory_strategy,
            agent_id=body.agent_id,
            ttl_seconds=None if body.ttl_seconds is None else max(body.ttl_seconds, 0),
            client_tokens=body.tokens,
            created_at=body.created_at if "created_at" in named else None,
            last_accessed=body.last_accessed if "last_accessed" in named else None,
            if_match=if_match,
            fed_back=await self._is_fed_back(body.messages),
            empty=_empty(identified),
            **self._window_fields(model_name, context_window_max),
        )
        written = await self._store.write(scope, ref, change)
        stored = stored_messages(identified, messages)
        for position, beside in written.restored_content:
            stored[position] = with_beside(stored[position], from_json(beside))
        session = {
            **body.__dict__,
            "namespace": ref.namespace,
            "user_id": ref.user_id,
            "session_id": session_id,
            "messages": stored,
            "memories": memories,
            "created_at": datetime.fromisoformat(written.caller_created_at) if written.caller_created_at else from_micros(written.created),
            "updated_at": datetime.now(UTC),
            **self._percentages(written.tokens, bool(stored), model_name, context_window_max),
            "new_session": None,
            "unsaved": None,
        }
        return SessionAnswer(WorkingMemoryResponse.model_construct(None, **session), written.version, not timed)

    async def append(
        self, scope: Scope, session_id: str, body: AppendMessagesRequest, *, if_match: str | None = None, replaces: bool = False
    ) -> AppendMessagesResponse:
        """Append messages like `append_messages`, but return only the response."""
        return (await self.append_messages(scope, session_id, body, if_match=if_match, replaces=replaces))[0]

    async def append_messages(
        self, scope: Scope, session_id: str, body: AppendMessagesRequest, *, if_match: str | None = None, replaces: bool = False
    ) -> tuple[AppendMessagesResponse, Sequence[MemoryMessage]]:
        """Append messages that are not stored yet, creating the session if necessary.

        Return the response and the stored messages, in which reused ids are replaced with new ones.
        If `replaces` is true, the messages replace the session but not its long-term memories.
        """
        ref = session_of(scope, session_id, body.namespace, body.user_id)
        permit_agent(scope, body.agent_id)

        def prepare() -> tuple[Sequence[MemoryMessage], list[MemoryMessage]]:
            self._check_messages(scope, body.messages)
            named = with_made_ids(body.messages)
            return named, with_distinct_ids(named)

        named, distinct = await run_in_thread(prepare, messages_work(body.messages))
        await self._room(scope, body.messages)
        messages = await self._new(distinct, scope.actor)
        change = SessionWrite(
            mode="append",
            messages=messages,
            distinct_ids=True,
            agent_id=body.agent_id,
            if_match=if_match,
            replaces=replaces,
            fed_back=await self._is_fed_back(body.messages),
            empty=_empty(body.messages),
            compare=None if replaces else partial(self._former.compare, scope, ref),
            **self._window_fields(body.model_name, body.context_window_max),
        )
        written = await self._store.write(scope, ref, change)
        answer = AppendMessagesResponse(
            session_id=session_id,
            namespace=ref.namespace,
            user_id=ref.user_id,
            appended=written.added,
            total_messages=written.messages,
            tokens=written.tokens,
            version=written.version,
            **self._percentages(written.tokens, True, body.model_name, body.context_window_max),
        )
        return answer, stored_messages(named, messages)

    async def get(
        self,
        scope: Scope,
        session_id: str,
        *,
        namespace: str | None = None,
        user_id: str | None = None,
        recent_messages_limit: int | None = None,
        model_name: str | None = None,
        context_window_max: int | None = None,
    ) -> SessionAnswer:
        """Return the session or, if it is missing, the only other match. Raises NotFound."""
        last = recent_messages_limit if recent_messages_limit and recent_messages_limit > 0 else None
        named = self._window(model_name, context_window_max) if model_name or context_window_max else None
        # Read only the messages that the answer shows.
        window = None if named is None or last is not None else TokenWindow(named, named)
        ref = session_of(scope, session_id, namespace, user_id)
        state = await self._store.get(scope, ref, last, window)
        if state is None and (only := await self._store.find_only(scope, ref)) is not None:
            state = await self._store.get(scope, only, last, window)
        if state is None:
            raise NotFound(f"Session {session_id} not found", field="session_id")
        messages: Sequence[StoredMessage] = state.messages
        if last is not None:
            messages = await self._last(scope, state, last)
            messages = sorted(messages, key=lambda stored: stored.message.created_at)
            messages = messages if named is None else fitting(messages, named)
        return SessionAnswer(self._view(state, messages, model_name, context_window_max), state.version)

    async def patch_data(
        self,
        scope: Scope,
        session_id: str,
        data: dict[str, Any],
        *,
        namespace: str | None = None,
        user_id: str | None = None,
        if_match: str | None = None,
    ) -> SessionAnswer:
        """Apply a merge patch (RFC 7396) to the data. Raises NotFound or VersionMismatch."""
        ref = session_of(scope, session_id, namespace, user_id)
        if await self._store.merge_data(scope, ref, data, if_match) is None:
            # As in `get`, use the only session that matches.
            only = await self._store.find_only(scope, ref)
            if only is None or await self._store.merge_data(scope, only, data, if_match) is None:
                raise NotFound(f"Session {session_id} not found", field="session_id")
            ref = only
        return await self.get(scope, session_id, namespace=ref.namespace, user_id=ref.user_id)

    async def delete(self, scope: Scope, session_id: str, *, namespace: str | None = None, user_id: str | None = None) -> AckResponse:
        """Delete the session that `get` would return, if any."""
        ref = session_of(scope, session_id, namespace, user_id)
        if not await self._store.delete(scope, ref) and (only := await self._store.find_only(scope, ref)) is not None:
            await self._store.delete(scope, only)
        return AckResponse(status="ok")

    async def list(
        self,
        scope: Scope,
        *,
        namespace: str | None = None,
        user_id: str | None = None,
        limit: int = 20,
        offset: int = 0,
        identities: bool = False,
    ) -> SessionListResponse:
        """Return a page of session ids, oldest first, and the total.

        If `identities` is true, include each session's owner.
        """
        total, refs = await self._store.list(scope, *list_place_of(scope, namespace, user_id), offset, limit)
        answer = SessionListResponse(sessions=[ref.session_id for ref in refs], total=total)
        if identities:
            answer.identities = [SessionIdentity(session_id=ref.session_id, namespace=ref.namespace, user_id=ref.user_id) for ref in refs]
        return answer

    async def list_refs(self, scope: Scope, namespace: str | None, user_id: str | None, limit: int, offset: int) -> list[SessionRef]:
        """Return the same page of sessions as `list`, with their full identities."""
        return (await self._store.list(scope, *list_place_of(scope, namespace, user_id), offset, limit))[1]

    async def get_many(self, scope: Scope, refs: Sequence[SessionRef]) -> list[WorkingMemoryResponse]:
        """Return the existing sessions in `refs`, with all their messages."""
        states = await self._store.get_many(scope, refs)
        return [self._view(state, state.messages, None, None) for state in states if state is not None]

    async def _last(self, scope: Scope, state: SessionState, last: int) -> Sequence[StoredMessage]:
        """Return the last messages, except tool results whose calls are missing."""
        read, messages = last, state.messages
        while len(messages) == read and lacks_calls(messages):
            # A call is usually a few messages back. Some calls never existed, so this search has a limit.
            read = 2 * read + 10
            more = await self._store.get(scope, state.ref, read)
            messages = messages if more is None else more.messages
            if read > _FAR * last and whole_from(messages, len(messages) - last) > 0:
                break
        return messages[whole_from(messages, len(messages) - last) :]

    @staticmethod
    async def _is_fed_back(messages: Sequence[MemoryMessage]) -> bool:
        """True if a message repeats text from a memory prompt."""
        return await run_in_thread(
            lambda: any(own_words(message.content, message.role) != message.content for message in messages), messages_work(messages)
        )

    async def _new(self, messages: Sequence[MemoryMessage], writer: str) -> list[NewMessage]:
        longterm = self._settings.longterm
        promotes = longterm.enabled and (longterm.promote_messages or self._extracts)
        read = await run_in_thread(lambda: [counted(message) for message in messages], messages_work(messages))
        tokens = await self._counter.count_messages([(message.role, text) for message, (text, _) in zip(messages, read, strict=True)])
        return [
            NewMessage(message, number + more, promotes and _is_promoted(message), promotes and _has_words(message), writer)
            for message, number, (_, more) in zip(messages, tokens, read, strict=True)
        ]

    async def _room(self, scope: Scope, messages: Sequence[MemoryMessage], memories: int = 0) -> None:
        """Raise TooMany if the new memories would exceed the tenant's limit."""
        if self.promotes:
            memories += sum(map(_is_promoted, messages))
        await self._memory_limit.room_for(scope.tenant, memories)

    def _with_stable_id(self, ref: SessionRef, record: MemoryRecord) -> MemoryRecord:
        """Fill in a missing id that stays the same when a PUT is repeated.

        The id is a keyed digest, so callers cannot test whether another session contains a text.
        """
        if "id" in record.model_fields_set:
            return record
        parts = (ref.namespace, ref.user_id, ref.session_id, record.memory_type.value, record.text)
        return record.model_copy(update={"id": self._ids.of("own", *parts)})

    def _check_session(self, scope: Scope, body: UpdateWorkingMemory) -> bool:
        timed = self._check_messages(scope, body.messages)
        for record in body.memories:
            record.written_by = None
        note_unreadable_dates(record.metadata for record in body.memories)
        check_strategy(body.long_term_memory_strategy)
        return timed

    def _check_messages(self, scope: Scope, messages: Sequence[MemoryMessage]) -> bool:
        timed = self._set_times(messages)
        for message in messages:
            message.written_by = None
        check_annotations(scope, messages)
        check_messages(messages, self._settings.limits.message_bytes)
        notice_roles(messages)
        notice_pictures(messages, self._extracts)
        note_unreadable_dates(message.own_fields.get("metadata") for message in messages)
        return timed

    def _set_times(self, messages: Sequence[MemoryMessage]) -> bool:
        rules = self._settings.working
        received = datetime.now(UTC)
        latest = received + timedelta(seconds=rules.max_future_seconds)
        timed = True
        for position, message in enumerate(messages):
            if "created_at" not in message.model_fields_set:
                timed = False
                if rules.require_timestamps:
                    raise BadInput("give each message a created_at (ISO 8601)", field=f"messages.{position}.created_at")
                # One more microsecond for each message keeps the order. The time to read a request must not count.
                message.created_at = received + timedelta(microseconds=position)
                message.model_fields_set.discard("created_at")
            elif message.created_at > latest:
                raise BadInput(
                    f"is more than {rules.max_future_seconds} s in the future; give the time at which the message was said",
                    field=f"messages.{position}.created_at",
                )
        return timed

    def _window(self, model_name: str | None, context_window_max: int | None) -> int:
        return context_window_max or context_window(model_name, self._settings.models)

    def _window_fields(self, model_name: str | None, context_window_max: int | None) -> dict[str, Any]:
        settings = self._settings
        named = self._window(model_name, context_window_max) if model_name or context_window_max else None
        debounce = settings.longterm.extraction_debounce_seconds
        return {
            "window": named,
            "default_window": settings.models.default_context_window,
            "summarize_ratio": settings.working.summarization_threshold if settings.working.summarize else 0.0,
            "extract_after_ms": int(debounce * 1000) if self._extracts else -1,
            "extract_within_ms": int(debounce * 10_000),
            "extract_tokens": settings.longterm.extraction_batch_tokens,
        }

    def _percentages(self, tokens: int, any_messages: bool, model_name: str | None, context_window_max: int | None) -> dict[str, Any]:
        if not model_name and not context_window_max:
            return {"context_percentage_total_used": None, "context_percentage_until_summarization": None}
        window = self._window(model_name, context_window_max)
        used = tokens if any_messages else 0
        limit = max(int(window * self._settings.working.summarization_threshold), 1)
        return {
            "context_percentage_total_used": min(100.0, used / window * 100.0),
            "context_percentage_until_summarization": min(100.0, used / limit * 100.0),
        }

    def _view(
        self, state: SessionState, messages: Sequence[StoredMessage], model_name: str | None, context_window_max: int | None
    ) -> WorkingMemoryResponse:
        records = [MemoryRecord.model_validate(record, context=ANSWER) for record in state.memories]
        for record in records:
            if record.persisted_at is None and record.id in state.promoted:
                record.persisted_at = datetime.fromisoformat(state.promoted[record.id])
        return WorkingMemoryResponse.model_construct(
            session_id=state.ref.session_id,
            namespace=state.ref.namespace,
            user_id=state.ref.user_id,
            agent_id=state.agent_id,
            messages=[_with_progress(stored, state, self._extracts) for stored in messages],
            memories=records,
            refused_memories=state.refused or None,
            data=state.data or {},
            context=state.context,
            tokens=state.client_tokens,
            long_term_memory_strategy=state.strategy,
            ttl_seconds=state.ttl_seconds,
            last_accessed=state.last_accessed,
            created_at=state.created_at,
            updated_at=state.updated_at,
            **self._percentages(state.message_tokens, bool(messages), model_name, context_window_max),
        )


class _HasTokens(OrderedMessage, Protocol):
    @property
    def tokens(self) -> int: ...


Counted = TypeVar("Counted", bound=_HasTokens)


def fitting(messages: Sequence[Counted], window: int, *, overhead: int = 0) -> list[Counted]:
    """Return the last messages that fit into the window, but at least one.

    Tool calls are kept together with their results.
    """
    last = first_fitting(reversed(messages), window, lambda stored: stored.tokens + overhead)
    return list(messages[whole_from(messages, len(messages) - len(last)) :])


def _is_promoted(message: MemoryMessage) -> bool:
    return message.discrete_memory_extracted == "f" and _has_words(message)


def _has_words(message: MemoryMessage) -> bool:
    return not is_blank(message.content) or bool(words_of_files(message.content_parts))


def _empty(messages: Sequence[MemoryMessage]) -> list[int]:
    """Return the positions of messages that have no text, content parts or custom fields."""
    blank = [position for position, message in enumerate(messages) if not message.content]
    return [position for position in blank if not (messages[position].content_parts or messages[position].own_fields)]


def _with_progress(stored: StoredMessage, state: SessionState, extracts: bool) -> MemoryMessage:
    message = stored.message
    if message.persisted_at is None and stored.promote and stored.seq <= state.promoted_to:
        message.persisted_at = state.promoted_at
    if stored.seq <= (state.extracted_to if extracts else state.promoted_to):
        message.discrete_memory_extracted = "t"
    return message


def with_made_ids(messages: Sequence[MemoryMessage]) -> Sequence[MemoryMessage]:
    """Derive missing message ids from the Idempotency-Key, if there is one."""
    if not is_repeatable():
        return messages
    return [message if "id" in message.model_fields_set else message.model_copy(update={"id": made_id()}) for message in messages]


def _with_stored_types(memories: Sequence[MemoryRecord], procedural: Collection[str]) -> list[MemoryRecord]:
    """Restore the type of memories that are procedural in the stored session."""
    return [
        record.model_copy(update={"memory_type": MemoryTypeEnum.PROCEDURAL})
        if record.id in procedural and record.memory_type is MemoryTypeEnum.SEMANTIC
        else record
        for record in memories
    ]
