"""Session and memory services for Google's ADK."""

# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUntypedBaseClass=false, reportUnknownLambdaType=false

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from agent_memory_client.errors import MemoryNotFoundError
from agent_memory_client.integrations._shared import (
    AnyClient,
    EitherClient,
    Recall,
    SessionMessages,
    our_message,
    raw_of,
    their_session_id,
    tool_call,
)
from agent_memory_client.models import DeleteItem, MemoryMessage, MemoryRecordResult, PutItem, SearchItems

try:
    from google.adk.errors.already_exists_error import AlreadyExistsError
    from google.adk.errors.session_not_found_error import SessionNotFoundError
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig, ListSessionsResponse
    from google.adk.sessions.session import Session
    from google.adk.sessions.state import State
    from google.genai import types
except ImportError as error:
    raise ImportError("the services need google-adk: pip install 'agent-memory-api-client[google-adk]'") from error

EVENT = "adk_event"
"""The message field that contains ADK's own event."""
STATE = "adk-state"
"""The first label of the items that store states."""
_WITHOUT_SESSION = "adk-events"


class AgentMemorySessionService(BaseSessionService):
    """A `BaseSessionService`: `Runner(…, session_service=AgentMemorySessionService(client))`.

    Sessions keep their ADK ids and users, and use the app as their namespace. Events are returned
    exactly as they were appended, and become long-term memories. Session, user (`user:`) and app
    (`app:`) state is stored in items. Calls raise the errors in `agent_memory_client.errors`, and
    the same errors as ADK's own services.
    """

    def __init__(self, client: AnyClient) -> None:
        self._client = client

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        """Create a session.

        Raises AlreadyExistsError if the user already has a session with this id in the app.
        """
        session_id = (session_id or "").strip() or str(uuid4())
        access = _Access(self._client, app_name, user_id, session_id)
        created, _ = await access.awaited(lambda client: client.sessions.get_or_create(access.session_id, user_id, app_name))
        if not created:
            raise AlreadyExistsError(f"Session with id {session_id} already exists.")
        await access.write_state(state or {})
        session = await self.get_session(app_name=app_name, user_id=user_id, session_id=session_id)
        assert session is not None
        return session

    async def get_session(self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None) -> Session | None:
        """Return a session with its events and state, or None."""
        access = _Access(self._client, app_name, user_id, session_id)
        recent = None if config is None else config.num_recent_events
        try:
            stored = await access.awaited(lambda client: access.get(client, 1))
        except MemoryNotFoundError:
            return None
        events = [_their(message) for message in await access.aread(recent)]
        if config is not None and config.after_timestamp is not None:
            events = _after(events, config.after_timestamp)
        return await _session(access, stored, events)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """Return one or all users' sessions, excluding events, ordered by last write."""
        sessions: list[Session] = []
        for owner, session_id in await EitherClient(self._client, user_id, app_name).aidentities():
            if owner is None:  # not an ADK session
                continue
            access = _Access(self._client, app_name, owner, session_id)
            try:
                stored = await access.awaited(lambda client, access=access: access.get(client, 1))
            except MemoryNotFoundError:
                continue
            sessions.append(await _session(access, stored, []))
        return ListSessionsResponse(sessions=sorted(sessions, key=lambda session: (session.last_update_time, session.user_id, session.id)))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session and its state, but not the memories derived from it."""
        access = _Access(self._client, app_name, user_id, session_id)
        await access.adelete()
        await access.delete_state()

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return the user's state, with the `user:` prefix removed from the keys."""
        access = _Access(self._client, app_name, user_id, "-")
        return _values(await access.awaited(lambda client: client.items.search([STATE, "user"], limit=10_000, **access.owner)))

    async def append_event(self, session: Session, event: Event) -> Event:
        """Append an event unless it is already stored. Raises SessionNotFoundError."""
        if event.partial:
            return event
        access = _Access(self._client, session.app_name, session.user_id, session.id)
        try:
            await access.awaited(lambda client: access.get(client, 1))
        except MemoryNotFoundError:
            raise SessionNotFoundError(f"Session {session.id} not found.") from None
        event = await super().append_event(session, event)
        session.last_update_time = event.timestamp
        await access.aappend([_our(event)])
        if event.actions and event.actions.state_delta:
            await access.write_state(event.actions.state_delta)
        return event


class AgentMemoryMemoryService(BaseMemoryService):
    """A `BaseMemoryService`: `Runner(…, memory_service=AgentMemoryMemoryService(client))`.

    Sessions from an `AgentMemorySessionService` become memories automatically, so add only sessions
    from other services. The app is the namespace. A search returns at most `limit` memories.
    """

    def __init__(self, client: AnyClient, *, limit: int = 10) -> None:
        self._client = client
        self._limit = limit

    async def add_session_to_memory(self, session: Session) -> None:
        """Store a session's messages. Messages that are already stored are skipped."""
        await self.add_events_to_memory(app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store events that are not stored yet. Metadata is not stored."""
        session = SessionMessages(self._client, session_id or _WITHOUT_SESSION, user_id, app_name)
        await session.aappend([_our(event) for event in events if not event.partial])

    async def add_memory(
        self, *, app_name: str, user_id: str, memories: Sequence[MemoryEntry], custom_metadata: Mapping[str, object] | None = None
    ) -> None:
        """Store memories, replacing memories that have the same ids. Metadata is not stored."""
        records = [{"text": _text(entry.content), "user_id": user_id, "namespace": app_name, "id": entry.id or None} for entry in memories]
        access = EitherClient(self._client, user_id, app_name)
        await access.awaited(lambda client: client.memories.create(records))

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        memories = await Recall(self._client, user_id, app_name, limit=self._limit).asearch(query)
        return SearchMemoryResponse(memories=[_entry(memory) for memory in memories])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete a memory of this user and app, if it exists."""
        access = EitherClient(self._client, user_id, app_name)
        if not memory_id:
            return
        try:
            memory = await access.awaited(lambda client: client.memories.get(memory_id))
        except MemoryNotFoundError:
            return
        if (memory.user_id, memory.namespace) == (user_id, app_name):
            await access.awaited(lambda client: client.memories.delete([memory_id]))


class _Access(SessionMessages):
    def __init__(self, client: AnyClient, app_name: str, user_id: str, session_id: str) -> None:
        super().__init__(client, session_id.strip(), user_id, app_name)

    async def read_state(self) -> dict[str, Any]:
        """Return session, user and app state with ADK's key names."""
        reads = [SearchItems(prefix=[STATE, *rest], limit=10_000) for rest in (["session", self.session_id], ["user"])]
        of_session, of_user = await self.awaited(lambda client: client.items.batch(reads, **self.owner))
        of_app = await self.awaited(lambda client: client.items.search([STATE, "app"], limit=10_000, namespace=self.namespace))
        state = _values(of_session.items)
        state |= {State.APP_PREFIX + name: value for name, value in _values(of_app).items()}
        return state | {State.USER_PREFIX + name: value for name, value in _values(of_user.items).items()}

    async def write_state(self, state: Mapping[str, Any]) -> None:
        """Set session, user and app state. `temp:` values are not stored."""
        of_app: list[PutItem] = []
        of_user: list[PutItem] = []
        for name, value in state.items():
            if name.startswith(State.APP_PREFIX):
                of_app.append(_put(["app"], name.removeprefix(State.APP_PREFIX), value))
            elif name.startswith(State.USER_PREFIX):
                of_user.append(_put(["user"], name.removeprefix(State.USER_PREFIX), value))
            elif not name.startswith(State.TEMP_PREFIX):
                of_user.append(_put(["session", self.session_id], name, value))
        if of_user:
            await self.awaited(lambda client: client.items.batch(of_user, **self.owner))
        if of_app:
            await self.awaited(lambda client: client.items.batch(of_app, namespace=self.namespace))

    async def delete_state(self) -> None:
        path = [STATE, "session", self.session_id]
        items = await self.awaited(lambda client: client.items.search(path, limit=10_000, **self.owner))
        deletions = [DeleteItem(path=path, key=item.key) for item in items]
        for start in range(0, len(deletions), 1000):
            part = deletions[start : start + 1000]
            await self.awaited(lambda client, part=part: client.items.batch(part, **self.owner))


def _put(path: Sequence[str], name: str, value: Any) -> PutItem:
    return PutItem(path=[STATE, *path], key=name, value={"value": value}, index=False)


def _values(items: Sequence[Any]) -> dict[str, Any]:
    return {item.key: item.value["value"] for item in items}


async def _session(access: _Access, stored: Any, events: list[Event]) -> Session:
    return Session(
        id=their_session_id(access.session_id),
        app_name=str(access.namespace),
        user_id=str(access.user_id),
        state=await access.read_state(),
        events=events,
        last_update_time=stored.updated_at.timestamp(),
    )


def _after(events: list[Event], timestamp: float) -> list[Event]:
    older = [position for position, event in enumerate(events) if event.timestamp < timestamp]
    return events[older[-1] + 1 :] if older else events


def _our(event: Event) -> MemoryMessage:
    raw = event.model_dump(mode="json", exclude_none=True)
    calls = [tool_call(call.id, call.name or "", json.dumps(call.args or {}, default=str)) for call in event.get_function_calls()]
    responses = event.get_function_responses()
    role = "user" if event.author == "user" else "tool" if responses else "assistant"
    more = {"id": event.id or None, "tool_calls": calls or None, "tool_call_id": responses[0].id if responses else None}
    return our_message(role, _text(event.content), (EVENT, raw), **more)


def _their(message: MemoryMessage) -> Event:
    raw = raw_of(message, EVENT)
    if raw is not None:
        return Event.model_validate_json(json.dumps(raw))
    author = "user" if message.role == "user" else "model"
    content = types.Content(role=author, parts=[types.Part(text=message.content)])
    return Event(id=message.id, author=author, content=content, timestamp=message.created_at.timestamp())


def _text(content: types.Content | None) -> str:
    parts = (content.parts if content is not None else None) or []
    return "\n".join(part.text for part in parts if part.text and not part.thought)


def _entry(memory: MemoryRecordResult) -> MemoryEntry:
    event_time = memory.event_date or memory.created_at
    content = types.Content(role="user", parts=[types.Part(text=memory.text)])
    return MemoryEntry(id=memory.id, content=content, author="user", timestamp=event_time.isoformat())
