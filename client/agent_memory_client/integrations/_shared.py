"""Code shared by the adapters."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from pydantic import TypeAdapter, ValidationError

from agent_memory_client._tools import definitions
from agent_memory_client._tools.calls import ToolCallResolutionResult
from agent_memory_client._wire.requests import MessageWait, checked, validation_error
from agent_memory_client.errors import MemoryNotFoundError, MemoryUnavailableError, MemoryValidationError
from agent_memory_client.memory_client import MemoryClient
from agent_memory_client.models import (
    MAX_APPENDED_MESSAGES,
    MAX_ROLE_CHARS,
    Identifier,
    MemoryMessage,
    MemoryRecordResult,
    WorkingMemory,
    is_blank,
)
from agent_memory_client.sync import SyncMemoryClient

AnyClient: TypeAlias = MemoryClient | SyncMemoryClient

NEVER_SUMMARIZED = 2**53 - 1
"""A context window (tokens) so large that the server never summarizes."""
_ID: TypeAdapter[str] = TypeAdapter(Identifier)


class EitherClient:
    """Wraps an asynchronous or blocking client for one user and namespace.

    Calls work with and without `await`. With a `SyncMemoryClient`, awaited calls run in a thread.
    With a `MemoryClient`, blocking calls use a second client with the same config, which `close`
    closes. Raises MemoryValidationError if the user or namespace is an empty string.
    """

    def __init__(self, client: AnyClient, user_id: str | None = None, namespace: str | None = None) -> None:
        for name, value in (("user_id", user_id), ("namespace", namespace)):
            if value is not None and not value:
                raise MemoryValidationError(f"{name}: must not be empty; leave it out for none")
        self.client = client
        self.user_id = user_id
        self.namespace = namespace
        self._twin: SyncMemoryClient | None = None

    @property
    def blocking(self) -> SyncMemoryClient:
        """Return `client` if it is blocking, or else a blocking client with the same settings."""
        if isinstance(self.client, SyncMemoryClient):
            return self.client
        if self._twin is None:
            twin, user = SyncMemoryClient(self.client.config), self.client.acting_user
            self._twin = twin if user is None else twin.for_user(user)
        return self._twin

    def close(self) -> None:
        """Close the second client, if any. The original client stays open."""
        if self._twin is not None:
            self._twin.close()
            self._twin = None

    async def awaited(self, call: Callable[[Any], Any]) -> Any:
        """Pass the client to `call` and await the result.

        `call` must make exactly one client call.
        """
        if isinstance(self.client, SyncMemoryClient):
            return await asyncio.to_thread(call, self.client)
        return await call(self.client)

    @property
    def owner(self) -> dict[str, Any]:
        """The user and namespace as arguments for a call."""
        return {"user_id": self.user_id, "namespace": self.namespace}

    @property
    def filters(self) -> dict[str, Any]:
        """The user and namespace as search filters."""
        return {name: {"eq": value} for name, value in self.owner.items() if value is not None}

    def session(self, session_id: str) -> SessionMessages:
        """Return the messages in one of this user's sessions in the namespace."""
        return SessionMessages(self.client, session_id, self.user_id, self.namespace)

    def keys(self) -> list[str]:
        """Return all session ids for this user and namespace."""
        keys: list[str] = []
        while page := self._list(self.blocking, len(keys)).sessions:
            keys += page
        return [their_session_id(key) for key in keys]

    async def akeys(self) -> list[str]:
        keys: list[str] = []
        while page := (await self.awaited(lambda client: self._list(client, len(keys)))).sessions:
            keys.extend(page)
        return [their_session_id(key) for key in keys]

    async def aidentities(self) -> list[tuple[str | None, str]]:
        """Return the user and id of each session. If no user is set, include all users."""
        identities: list[tuple[str | None, str]] = []
        while page := (await self.awaited(lambda client: self._list(client, len(identities), identities=True))).identities:
            identities.extend((session.user_id, their_session_id(session.session_id)) for session in page)
        return identities

    def _list(self, client: Any, offset: int, *, identities: bool = False) -> Any:
        return client.sessions.list(100, offset, **self.owner, identities=identities)


class _OfSession(EitherClient):
    def __init__(self, client: AnyClient, session_id: str, user_id: str | None = None, namespace: str | None = None) -> None:
        super().__init__(client, user_id, namespace)
        self.session_id = our_session_id(session_id)


class SessionMessages(_OfSession):
    """All messages in one session, not including summaries."""

    def read(self, limit: int | None = None) -> list[MemoryMessage]:
        """Return all messages, or only the newest `limit` messages, oldest first."""
        messages: list[MemoryMessage] = []
        try:
            for window in _windows(limit):
                messages = self.get(self.blocking, window).messages
                if limit is not None and len(messages) >= limit:
                    break
        except MemoryNotFoundError:
            return []
        return _newest(messages, limit)

    async def aread(self, limit: int | None = None) -> list[MemoryMessage]:
        messages: list[MemoryMessage] = []
        try:
            for window in _windows(limit):
                messages = (await self.awaited(lambda client, window=window: self.get(client, window))).messages
                if limit is not None and len(messages) >= limit:
                    break
        except MemoryNotFoundError:
            return []
        return _newest(messages, limit)

    def append(self, messages: Sequence[MemoryMessage]) -> None:
        for part in _parts(messages):
            self._append(self.blocking, part)

    async def aappend(self, messages: Sequence[MemoryMessage], wait: MessageWait = None) -> None:
        """Append messages. `wait` works like in `Sessions.append`."""
        for part in _parts(messages):
            await self.awaited(lambda client, part=part: self._append(client, part, wait))

    def replace(self, messages: Sequence[MemoryMessage]) -> None:
        self._put(self.blocking, messages)

    async def areplace(self, messages: Sequence[MemoryMessage]) -> None:
        await self.awaited(lambda client: self._put(client, messages))

    def change(self, change: Callable[[list[MemoryMessage]], list[MemoryMessage]]) -> list[MemoryMessage]:
        """Replace the messages with the result of `change`, and return the previous messages.

        `change` is called again if there was a concurrent write.
        """
        return self._change(self.blocking, change)

    async def achange(self, change: Callable[[list[MemoryMessage]], list[MemoryMessage]]) -> list[MemoryMessage]:
        return await self.awaited(lambda client: self._change(client, change))

    async def apop(self) -> MemoryMessage | None:
        """Remove and return the newest message, or None if the session is empty."""
        return await self.awaited(
            lambda client: client.sessions.pop_message(self.session_id, self.namespace, self.user_id, NEVER_SUMMARIZED)
        )

    def delete(self) -> None:
        """Delete all messages, but not the memories derived from them."""
        self.blocking.sessions.delete(self.session_id, self.namespace, self.user_id)

    async def adelete(self) -> None:
        await self.awaited(lambda client: client.sessions.delete(self.session_id, self.namespace, self.user_id))

    def get(self, client: Any, limit: int | None) -> Any:
        return client.sessions.get(self.session_id, **self.owner, context_window_max=NEVER_SUMMARIZED, recent_messages_limit=limit)

    def _append(self, client: Any, messages: Sequence[MemoryMessage], wait: MessageWait = None) -> Any:
        return client.sessions.append(self.session_id, messages, **self.owner, context_window_max=NEVER_SUMMARIZED, wait=wait)

    def _change(self, client: Any, change: Callable[[list[MemoryMessage]], list[MemoryMessage]]) -> Any:
        return client.sessions.change_messages(self.session_id, change, **self.owner, context_window_max=NEVER_SUMMARIZED)

    def _put(self, client: Any, messages: Sequence[MemoryMessage]) -> Any:
        session = checked(WorkingMemory, session_id=self.session_id, messages=list(messages), **self.owner)
        return client.sessions.put(self.session_id, session, self.user_id, context_window_max=NEVER_SUMMARIZED)


class Recall(EitherClient):
    """Searches for a user's memories that match a text, and formats them for a prompt.

    If the server is unavailable, the search returns no memories, or raises MemoryUnavailableError
    if `needed` is True.
    """

    def __init__(
        self, client: AnyClient, user_id: str | None = None, namespace: str | None = None, *, limit: int = 5, needed: bool = False
    ) -> None:
        super().__init__(client, user_id, namespace)
        self.limit = limit
        self.needed = needed

    def lines(self, text: str) -> str:
        """Return matching memories as text for a prompt, or "" if there are none."""
        try:
            return "" if is_blank(text) else _lines(self._render(self.blocking, text))
        except MemoryUnavailableError:
            if self.needed:
                raise
            return ""

    async def alines(self, text: str) -> str:
        try:
            return "" if is_blank(text) else _lines(await self.awaited(lambda client: self._render(client, text)))
        except MemoryUnavailableError:
            if self.needed:
                raise
            return ""

    def search(self, query: str, limit: int | None = None) -> list[MemoryRecordResult]:
        return self._search(self.blocking, query, limit).memories

    async def asearch(self, query: str, limit: int | None = None) -> list[MemoryRecordResult]:
        return (await self.awaited(lambda client: self._search(client, query, limit))).memories

    def _render(self, client: Any, text: str) -> Any:
        return client.prompts.render(text, long_term_search={"limit": self.limit, **self.filters})

    def _search(self, client: Any, query: str, limit: int | None) -> Any:
        return client.memories.search(query, limit=self.limit if limit is None else limit, **self.filters)


class Tools(_OfSession):
    """The memory tools for one session, user and namespace."""

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> ToolCallResolutionResult:
        """Call a tool and return its result. A mistake by the model does not raise an error."""
        return self._resolve(self.blocking, name, arguments)

    async def acall(self, name: str, arguments: Mapping[str, Any] | str) -> ToolCallResolutionResult:
        return await self.awaited(lambda client: self._resolve(client, name, arguments))

    def function(self, name: str) -> Callable[..., Awaitable[str]]:
        """Return an async function that runs a tool and returns text for the model."""

        async def call(**arguments: Any) -> str:
            return (await self.acall(name, arguments))["formatted_response"]

        return call

    def _resolve(self, client: Any, name: str, arguments: Mapping[str, Any] | str) -> Any:
        sent = arguments if isinstance(arguments, str) else dict(arguments)
        return client.tools.resolve_function_call(name, sent, self.session_id, self.namespace, self.user_id)


def tool_schemas(tools: Sequence[str] | Literal["all"] = "all") -> list[dict[str, Any]]:
    """Return the `name`, `description` and `parameters` of the given tools.

    Raises ValueError for an unknown name.
    """
    names = list(definitions.BY_NAME) if tools == "all" else list(tools)
    unknown = sorted(set(names) - set(definitions.BY_NAME))
    if unknown:
        raise ValueError(f"there is no tool {', '.join(unknown)}; use one of: {', '.join(definitions.BY_NAME)}")
    return [definitions.BY_NAME[name].schema().to_dict()["function"] for name in names]


def our_message(role: str, text: str, raw: tuple[str, Any], **more: Any) -> MemoryMessage:
    """Build a message that also contains the framework's own message.

    `raw` is the name and value of the field for the framework's message. Any role, text and id are
    accepted. Raises MemoryValidationError if the message cannot be encoded as JSON.
    """
    fields = {name: value for name, value in more.items() if value is not None}
    if "id" in fields:
        fields["id"] = our_id(fields["id"])
    base_fields = {"role": _our_role(role), "content": None if is_blank(text) else text}
    try:
        return MemoryMessage.model_validate({**base_fields, **fields, raw[0]: raw[1]})
    except ValidationError as error:
        raise validation_error(error) from error


def our_id(framework_id: str) -> str:
    """Return a framework's message id, or a digest if the id is not valid for this API."""
    try:
        return _ID.validate_python(framework_id)
    except ValidationError:
        return hashlib.blake2b(framework_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _our_role(role: str) -> str:
    return "".join(letter for letter in role if letter.isprintable())[:MAX_ROLE_CHARS].strip() or "user"


def tool_call(call_id: str | None, name: str | None, arguments: str | None) -> dict[str, Any]:
    """Return a tool call in the chat completions format. `arguments` is JSON text."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def raw_of(message: MemoryMessage, field: str) -> dict[str, Any] | None:
    """Return the framework's own message, or None if another program stored `message`."""
    raw = message.own_fields.get(field)
    return cast("dict[str, Any]", raw) if isinstance(raw, dict) else None


def our_session_id(framework_id: str) -> str:
    """Percent-encode "/" and "%" in a framework's session id. Our ids cannot contain "/"."""
    if any(sign in framework_id for sign in ("/", "%2F", "%25")):
        return framework_id.replace("%", "%25").replace("/", "%2F")
    return framework_id


def their_session_id(session_id: str) -> str:
    """Decode a session id that `our_session_id` encoded."""
    return session_id.replace("%2F", "/").replace("%25", "%")


def _windows(limit: int | None) -> list[int | None]:
    """Return the limits to try until a response contains `limit` messages.

    The server omits a tool result if its call is not among the newest messages.
    """
    return [None] if limit is None else [limit, 2 * limit + 50, None] if limit > 0 else []


def _newest(messages: list[MemoryMessage], limit: int | None) -> list[MemoryMessage]:
    return messages if limit is None else messages[-limit:] if limit > 0 else []


def _parts(messages: Sequence[MemoryMessage]) -> list[Sequence[MemoryMessage]]:
    return [messages[start : start + MAX_APPENDED_MESSAGES] for start in range(0, len(messages), MAX_APPENDED_MESSAGES)]


def _lines(prompt: Any) -> str:
    # Leave out the last message, which is the question.
    return "\n\n".join(message["content"] for message in prompt.to_openai()[:-1]) if prompt.long_term_memories else ""
