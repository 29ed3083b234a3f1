"""Sessions: the working memory of conversations.

Changes that have no endpoint are conditional writes (`ETag`, `If-Match`), retried after concurrent
changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from agent_memory_client._merging import MergeStrategy, merge_data
from agent_memory_client._wire.answers import Acknowledgement, parse, parse_acknowledgement
from agent_memory_client._wire.checks import as_messages, as_records, message_body, new_session
from agent_memory_client._wire.problems import problem_line
from agent_memory_client._wire.requests import (
    Call,
    MessageWait,
    Wait,
    checked,
    idempotency_headers,
    jsonable,
    omit_none,
    query,
    wait_seconds,
)
from agent_memory_client.errors import MemoryNotFoundError, MemoryPreconditionFailedError, MemoryValidationError
from agent_memory_client.models import (
    AckResponse,
    AppendMessagesRequest,
    AppendMessagesResponse,
    ClientMemoryRecord,
    MemoryMessage,
    MemoryRecord,
    MemoryStrategyConfig,
    ModelNameLiteral,
    SessionIdentifier,
    SessionListResponse,
    WorkingMemory,
    WorkingMemoryResponse,
)
from agent_memory_client.resources.base import Resource
from agent_memory_client.resources.memories import Memories

MAX_CHANGE_ATTEMPTS = 10

_SESSION_ID: TypeAdapter[str] = TypeAdapter(SessionIdentifier)
_SESSION_TIMES = frozenset({"created_at", "updated_at", "last_accessed"})

Messages: TypeAlias = list[MemoryMessage]

_Change: TypeAlias = Callable[[WorkingMemory], dict[str, Any]]


class Sessions(Resource):
    """Read and write sessions, using the client's default namespace, model and context window."""

    async def list(
        self, limit: int = 20, offset: int = 0, namespace: str | None = None, user_id: str | None = None, *, identities: bool = False
    ) -> SessionListResponse:
        """Return a page of session ids (`limit` 1 to 100).

        `identities` adds the sessions' users.
        """
        params = query(limit=limit, offset=offset, **self._scope(namespace, user_id), identities=identities or None)
        return await self._read(SessionListResponse, Call("GET", "/v1/working-memory/", params))

    async def get(
        self,
        session_id: str,
        user_id: str | None = None,
        namespace: str | None = None,
        model_name: ModelNameLiteral | None = None,
        context_window_max: int | None = None,
        *,
        recent_messages_limit: int | None = None,
    ) -> WorkingMemoryResponse:
        """Return a session.

        With a model or context window (in tokens), only the newest messages that fit are included.
        Raises MemoryNotFoundError.
        """
        window = self._window(model_name, context_window_max)
        call = self._get_call(session_id, user_id, namespace, **window, recent_messages_limit=recent_messages_limit)
        return await self._read(WorkingMemoryResponse, call)

    async def put(
        self,
        session_id: str,
        memory: WorkingMemory | Mapping[str, Any],
        user_id: str | None = None,
        model_name: str | None = None,
        context_window_max: int | None = None,
        *,
        if_match: str | None = None,
    ) -> WorkingMemoryResponse:
        """Store and return a session, replacing any existing one.

        `user_id` overrides the user in `memory`. `if_match` is an `ETag`. Raises
        MemoryPreconditionFailedError if the stored session has a different one.
        """
        condition = {} if if_match is None else {"If-Match": if_match}
        session = memory if isinstance(memory, WorkingMemory) else checked(WorkingMemory, **{**memory, "session_id": session_id})
        call = self._put_call(session_id, session, user_id, self._window(model_name, context_window_max), condition)
        return await self._read(WorkingMemoryResponse, call)

    async def get_or_create(
        self,
        session_id: str,
        user_id: str | None = None,
        namespace: str | None = None,
        model_name: ModelNameLiteral | None = None,
        context_window_max: int | None = None,
        long_term_memory_strategy: MemoryStrategyConfig | None = None,
    ) -> tuple[bool, WorkingMemoryResponse]:
        """Return `(created, session)`. Creates an empty session if it does not exist."""
        try:
            session = await self.get(session_id, user_id, namespace, model_name, context_window_max)
        except MemoryNotFoundError:
            pass
        else:
            # For a missing session, the archived server before 0.12 returns an empty, `unsaved` session.
            if session.unsaved is not True:
                return False, session
        memory = new_session(session_id, namespace, user_id, data={}, long_term_memory_strategy=long_term_memory_strategy)
        return True, await self.put(session_id, memory, user_id, model_name, context_window_max)

    async def append(
        self,
        session_id: str,
        messages: Sequence[Mapping[str, Any] | MemoryMessage],
        namespace: str | None = None,
        model_name: str | None = None,
        context_window_max: int | None = None,
        user_id: str | None = None,
        wait: MessageWait = None,
        *,
        agent_id: str | None = None,
    ) -> AppendMessagesResponse:
        """Append messages to a session atomically. Creates the session if it does not exist.

        Messages that are already stored (same id, role and content) are skipped, so the call is
        safe to repeat. `wait` delays the response until the messages are long-term memories
        ("promoted"), or until semantic search can find them ("searchable", True, or seconds).
        `reached` in the response is the stage at the end of the wait. `agent_id` sets the session's
        agent.
        """
        more = self._window(model_name, context_window_max) | omit_none(agent_id=agent_id)
        request = checked(AppendMessagesRequest, messages=as_messages(messages), **self._scope(namespace, user_id), **more)
        body = jsonable(request) | {"messages": [message_body(message) for message in request.messages]}
        call = Call("POST", f"{_path(session_id)}/messages", query(wait=wait), body, wait=wait_seconds(wait))
        return await self._read(AppendMessagesResponse, call)

    async def append_and_get(
        self,
        session_id: str,
        messages: Sequence[Mapping[str, Any] | MemoryMessage],
        namespace: str | None = None,
        model_name: str | None = None,
        context_window_max: int | None = None,
        user_id: str | None = None,
    ) -> WorkingMemoryResponse:
        """Append messages to a session and return the session.

        If `user_id` is None, messages are appended to the session that `get` would return. `append`
        needs fewer requests, and writes to exactly the given scope.
        """
        if not messages:
            _, session = await self.get_or_create(session_id, user_id, namespace, model_name, context_window_max)
            return session
        if user_id is None:
            try:
                owned = await self.get(session_id, None, namespace, recent_messages_limit=1)
            except MemoryNotFoundError:
                pass
            else:
                namespace, user_id = owned.namespace, owned.user_id
        done = await self.append(session_id, messages, namespace, model_name, context_window_max, user_id)
        return await self.get(session_id, done.user_id, done.namespace, model_name, context_window_max)

    async def set_data(
        self, session_id: str, data: dict[str, Any], namespace: str | None = None, preserve_existing: bool = True
    ) -> WorkingMemoryResponse:
        """Replace a session's `data`, or the entire session if `preserve_existing` is False."""
        if not preserve_existing:
            return await self.put(session_id, new_session(session_id, namespace, None, data=data))
        return await self._change(session_id, namespace, None, lambda _: {"data": data})

    async def update_data(
        self,
        session_id: str,
        data_updates: dict[str, Any],
        namespace: str | None = None,
        merge_strategy: MergeStrategy = "merge",
        user_id: str | None = None,
    ) -> WorkingMemoryResponse:
        """Update a session's `data`.

        `merge` sets keys, `deep_merge` also merges nested objects, and `replace` replaces all
        `data`.
        """
        merge_data(None, {}, merge_strategy)
        return await self._change(
            session_id, namespace, user_id, lambda session: {"data": merge_data(session.data, data_updates, merge_strategy)}
        )

    async def add_memories(
        self,
        session_id: str,
        memories: Sequence[ClientMemoryRecord | MemoryRecord | Mapping[str, Any]],
        namespace: str | None = None,
        replace: bool = False,
        *,
        user_id: str | None = None,
    ) -> WorkingMemoryResponse:
        """Add structured memories to a session, replacing memories with the same ids.

        With `replace`, all existing memories in the session are removed.
        """
        added = as_records(memories)
        ids = {memory.id for memory in added}

        def change(session: WorkingMemory) -> dict[str, Any]:
            remaining = [] if replace else [memory for memory in session.memories if memory.id not in ids]
            return {"memories": [*remaining, *added]}

        return await self._change(session_id, namespace, user_id, change)

    async def promote_memories(self, session_id: str, memory_ids: Sequence[str] | None = None, namespace: str | None = None) -> AckResponse:
        """Store a session's structured memories (all, or `memory_ids`) as long-term memories now.

        Otherwise, the server stores them later with the same ids. Records that have no scope get
        the session's scope. Raises MemoryNotFoundError.
        """
        session = await self._read(WorkingMemoryResponse, self._get_call(session_id, None, namespace))
        scope = {"namespace": session.namespace, "user_id": session.user_id, "session_id": session_id}
        memories = [
            memory.model_copy(update={key: value for key, value in scope.items() if getattr(memory, key) is None})
            for memory in session.memories
            if memory_ids is None or memory.id in memory_ids
        ]
        return await Memories(self._transport, self._config).create(memories) if memories else AckResponse(status="ok")

    async def flush(self, session_id: str, namespace: str | None = None, user_id: str | None = None, wait: Wait = None) -> Acknowledgement:
        """Run a session's pending background work now.

        This includes promotion, summarization and fact extraction. `wait` (seconds, or True for up
        to 10) waits until it is done. If it takes longer, the response is `pending`.
        """
        params = query(**self._scope(namespace, user_id), wait=wait)
        call = Call("POST", f"{_path(session_id)}/flush", params, headers=idempotency_headers(), wait=wait_seconds(wait))
        return parse_acknowledgement(await self._send(call))

    async def delete(
        self, session_id: str, namespace: str | None = None, user_id: str | None = None, *, memories: bool = False, wait: Wait = None
    ) -> Acknowledgement:
        """Delete a session, if it exists.

        `memories` also deletes the session's long-term memories in the background. `wait` works
        like in `flush`.
        """
        params = query(**self._scope(namespace, user_id), memories=memories or None, wait=wait)
        return parse_acknowledgement(await self._send(Call("DELETE", _path(session_id), params, wait=wait_seconds(wait))))

    async def pop_message(
        self, session_id: str, namespace: str | None = None, user_id: str | None = None, context_window_max: int | None = None
    ) -> MemoryMessage | None:
        """Remove and return the newest message, or None if the session is empty.

        Memories derived from the message are not deleted.
        """
        before = await self.change_messages(session_id, lambda messages: messages[:-1], namespace, user_id, context_window_max)
        return before[-1] if before else None

    async def change_messages(
        self,
        session_id: str,
        change: Callable[[Messages], Messages],
        namespace: str | None = None,
        user_id: str | None = None,
        context_window_max: int | None = None,
    ) -> Messages:
        """Replace a session's messages with the result of `change`. Return the previous messages.

        `change` receives a copy of the messages ([] if there is no session), and is called again
        after a concurrent write. Memories derived from removed messages are not deleted.
        """
        before: Messages = []

        def changed(session: WorkingMemory) -> dict[str, Any]:
            before[:] = session.messages
            messages = change([*before])
            return {} if messages == before else {"messages": messages}

        window = self._window(None, context_window_max)
        await self._change(session_id, namespace, user_id, changed, window)
        return before

    async def _change(
        self, session_id: str, namespace: str | None, user_id: str | None, change: _Change, window: Mapping[str, Any] | None = None
    ) -> WorkingMemoryResponse:
        """Apply the fields that `change` returns to the session, and write it back."""
        for attempt in range(1, MAX_CHANGE_ATTEMPTS + 1):
            try:
                response = await self._send(self._get_call(session_id, user_id, namespace))
            except MemoryNotFoundError:
                scope = self._scope(namespace, user_id)
                session = checked(WorkingMemoryResponse, session_id=session_id, **scope)
                condition = {"If-None-Match": "*"}
            else:
                session = parse(WorkingMemoryResponse, response)
                condition = {"If-Match": response.headers["ETag"]} if "ETag" in response.headers else {}
            fields = change(session)
            if not fields:
                return session
            call = self._put_call(session_id, session.model_copy(update=fields), session.user_id, window or {}, condition)
            try:
                return await self._read(WorkingMemoryResponse, call)
            except MemoryPreconditionFailedError:
                if attempt == MAX_CHANGE_ATTEMPTS:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _get_call(self, session_id: str, user_id: str | None, namespace: str | None, **window: Any) -> Call:
        return Call("GET", _path(session_id), query(**self._scope(namespace, user_id), **window))

    def _put_call(
        self, session_id: str, memory: WorkingMemory, user_id: str | None, window: Mapping[str, Any], condition: Mapping[str, str]
    ) -> Call:
        unset_times = _SESSION_TIMES - memory.model_fields_set
        body = memory.model_dump(mode="json", exclude_none=True, by_alias=True, include=set(WorkingMemory.model_fields) - unset_times)
        body |= {"messages": [message_body(message) for message in memory.messages], "session_id": session_id}
        body |= omit_none(**self._scope(memory.namespace, user_id))
        return Call("PUT", _path(session_id), query(user_id=user_id, **window), body, condition)


def _path(session_id: str) -> str:
    try:
        return f"/v1/working-memory/{quote(_SESSION_ID.validate_python(session_id), safe='')}"
    except ValidationError as error:
        raise MemoryValidationError(f"session_id: {problem_line(error)}") from error
