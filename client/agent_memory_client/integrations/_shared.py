"""What the adapters share: calls by either client, a session that keeps a framework's messages, what is remembered of a user, the tools."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast

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

NEVER_SUMMARIZED = 2**53 - 1
"""A context window (tokens) that no session fills: a framework gets back all that it added."""
_ID: TypeAdapter[str] = TypeAdapter(Identifier)


class EitherClient:
    """Calls a client by `await` or blocking, whichever kind it is, for one user and namespace.

    With a `SyncMemoryClient` awaited calls run in a thread; beside a `MemoryClient` blocking calls use a twin of the same config, which
    `close` ends. Raises MemoryValidationError for an empty user or namespace, which would be nobody's.
    """

    def __init__(self, client: MemoryClient | SyncMemoryClient, user_id: str | None = None, namespace: str | None = None) -> None:
        for name, value in (("user_id", user_id), ("namespace", namespace)):
            if value is not None and not value:
                raise MemoryValidationError(f"{name}: must not be empty; leave it out for none")
        self.client = client
        self.user_id = user_id
        self.namespace = namespace
        self._twin: SyncMemoryClient | None = None

    @property
    def blocking(self) -> SyncMemoryClient:
        """The client whose calls block."""
        if isinstance(self.client, SyncMemoryClient):
            return self.client
        if self._twin is None:
            self._twin = SyncMemoryClient(self.client.config)
        return self._twin

    def close(self) -> None:
        """Closes the twin; the client stays open."""
        if self._twin is not None:
            self._twin.close()
            self._twin = None

    async def awaited(self, call: Callable[[Any], Any]) -> Any:
        """What `call` of the client returns; `call` makes exactly one call."""
        if isinstance(self.client, SyncMemoryClient):
            return await asyncio.to_thread(call, self.client)
        return await call(self.client)

    @property
    def owner(self) -> dict[str, Any]:
        """The user and the namespace as arguments of a call."""
        return {"user_id": self.user_id, "namespace": self.namespace}

    @property
    def filters(self) -> dict[str, Any]:
        """The user and the namespace as filters of a search."""
        return {name: {"eq": value} for name, value in self.owner.items() if value is not None}


class SessionMessages(EitherClient):
    """The messages of one session, all of them, never summarized. Calls raise the errors of `agent_memory_client.errors`."""

    def __init__(
        self, client: MemoryClient | SyncMemoryClient, session_id: str, user_id: str | None = None, namespace: str | None = None
    ) -> None:
        super().__init__(client, user_id, namespace)
        self.session_id = our_session_id(session_id)

    def read(self, limit: int | None = None) -> list[MemoryMessage]:
        """The messages, oldest first; with a limit exactly the newest so many, or all if there are fewer."""
        messages: list[MemoryMessage] = []
        try:
            for asked in _windows(limit):
                messages = self._get(self.blocking, asked).messages
                if limit is not None and len(messages) >= limit:
                    break
        except MemoryNotFoundError:
            return []
        return _newest(messages, limit)

    async def aread(self, limit: int | None = None) -> list[MemoryMessage]:
        """As `read`."""
        messages: list[MemoryMessage] = []
        try:
            for asked in _windows(limit):
                messages = (await self.awaited(lambda client, asked=asked: self._get(client, asked))).messages
                if limit is not None and len(messages) >= limit:
                    break
        except MemoryNotFoundError:
            return []
        return _newest(messages, limit)

    def append(self, messages: Sequence[MemoryMessage]) -> None:
        """Adds messages at the end."""
        for part in _parts(messages):
            self._append(self.blocking, part)

    async def aappend(self, messages: Sequence[MemoryMessage], wait: MessageWait = None) -> None:
        """As `append`; with `wait` until they are long-term memories (see `Sessions.append`)."""
        for part in _parts(messages):
            await self.awaited(lambda client, part=part: self._append(client, part, wait))

    def replace(self, messages: Sequence[MemoryMessage]) -> None:
        """Stores messages in place of all that there are."""
        self._put(self.blocking, messages)

    async def areplace(self, messages: Sequence[MemoryMessage]) -> None:
        """As `replace`."""
        await self.awaited(lambda client: self._put(client, messages))

    def change(self, change: Callable[[list[MemoryMessage]], list[MemoryMessage]]) -> list[MemoryMessage]:
        """Stores what `change` makes of the messages in their place, against whoever writes at the same time; returns what there was."""
        return self._change(self.blocking, change)

    async def achange(self, change: Callable[[list[MemoryMessage]], list[MemoryMessage]]) -> list[MemoryMessage]:
        """As `change`."""
        return await self.awaited(lambda client: self._change(client, change))

    async def apop(self) -> MemoryMessage | None:
        """Takes the newest message away and returns it; None when there is none."""
        return await self.awaited(
            lambda client: client.sessions.pop_message(self.session_id, self.namespace, self.user_id, NEVER_SUMMARIZED)
        )

    def delete(self) -> None:
        """Takes all messages away; what became long-term memory of them stays."""
        self.blocking.sessions.delete(self.session_id, self.namespace, self.user_id)

    async def adelete(self) -> None:
        """As `delete`."""
        await self.awaited(lambda client: client.sessions.delete(self.session_id, self.namespace, self.user_id))

    def _get(self, client: Any, limit: int | None) -> Any:
        return client.sessions.get(self.session_id, **self.owner, context_window_max=NEVER_SUMMARIZED, recent_messages_limit=limit)

    def _append(self, client: Any, messages: Sequence[MemoryMessage], wait: MessageWait = None) -> Any:
        return client.sessions.append(self.session_id, messages, **self.owner, context_window_max=NEVER_SUMMARIZED, wait=wait)

    def _change(self, client: Any, change: Callable[[list[MemoryMessage]], list[MemoryMessage]]) -> Any:
        return client.sessions.change_messages(self.session_id, change, **self.owner, context_window_max=NEVER_SUMMARIZED)

    def _put(self, client: Any, messages: Sequence[MemoryMessage]) -> Any:
        session = checked(WorkingMemory, session_id=self.session_id, messages=list(messages), **self.owner)
        return client.sessions.put(self.session_id, session, self.user_id, context_window_max=NEVER_SUMMARIZED)

    def keys(self) -> list[str]:
        """The ids of all sessions of the same user and namespace."""
        keys: list[str] = []
        while page := self._list(self.blocking, len(keys)).sessions:
            keys += page
        return [their_session_id(key) for key in keys]

    async def akeys(self) -> list[str]:
        """As `keys`."""
        keys: list[str] = []
        while page := (await self.awaited(lambda client, keys=keys: self._list(client, len(keys)))).sessions:
            keys += page
        return [their_session_id(key) for key in keys]

    async def aidentities(self) -> list[tuple[str | None, str]]:
        """The user and the id of each session; of all users if there is none here."""
        found: list[tuple[str | None, str]] = []
        while page := (await self.awaited(lambda client, found=found: self._list(client, len(found), identities=True))).identities:
            found += [(session.user_id, their_session_id(session.session_id)) for session in page]
        return found

    def _list(self, client: Any, offset: int, *, identities: bool = False) -> Any:
        return client.sessions.list(100, offset, **self.owner, identities=identities)


class Recall(EitherClient):
    """What is remembered of a user: memories that fit a text, and the lines of a prompt made of them.

    While the server is away there are no lines, unless they are `needed`.
    """

    def __init__(
        self,
        client: MemoryClient | SyncMemoryClient,
        user_id: str | None = None,
        namespace: str | None = None,
        *,
        limit: int = 5,
        needed: bool = False,
    ) -> None:
        super().__init__(client, user_id, namespace)
        self.limit = limit
        self.needed = needed

    def lines(self, said: str) -> str:
        """What to put into a model's instructions beside what the user said; "" when nothing fits."""
        if is_blank(said):
            return ""
        try:
            return _lines(self._render(self.blocking, said))
        except MemoryUnavailableError:
            if self.needed:
                raise
            return ""

    async def alines(self, said: str) -> str:
        """As `lines`."""
        if is_blank(said):
            return ""
        try:
            return _lines(await self.awaited(lambda client: self._render(client, said)))
        except MemoryUnavailableError:
            if self.needed:
                raise
            return ""

    def search(self, query: str, limit: int | None = None, **more: Any) -> list[MemoryRecordResult]:
        """The memories that fit best."""
        return self._search(self.blocking, query, limit, more).memories

    async def asearch(self, query: str, limit: int | None = None, **more: Any) -> list[MemoryRecordResult]:
        """As `search`."""
        results = await self.awaited(lambda client: self._search(client, query, limit, more))
        return results.memories

    def _render(self, client: Any, said: str) -> Any:
        return client.prompts.render(said, long_term_search={"limit": self.limit, **self.filters})

    def _search(self, client: Any, query: str, limit: int | None, more: dict[str, Any]) -> Any:
        return client.memories.search(query, limit=self.limit if limit is None else limit, **(self.filters | more))


class Tools(EitherClient):
    """The memory tools of a conversation: their schemas, and their calls for one user and namespace."""

    def __init__(
        self, client: MemoryClient | SyncMemoryClient, session_id: str, user_id: str | None = None, namespace: str | None = None
    ) -> None:
        super().__init__(client, user_id, namespace)
        self.session_id = our_session_id(session_id)

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> ToolCallResolutionResult:
        """What a tool answers the model. Never raises for what the model did wrong."""
        return self._resolve(self.blocking, name, arguments)

    async def acall(self, name: str, arguments: Mapping[str, Any] | str) -> ToolCallResolutionResult:
        """As `call`."""
        return await self.awaited(lambda client: self._resolve(client, name, arguments))

    def _resolve(self, client: Any, name: str, arguments: Mapping[str, Any] | str) -> Any:
        sent = arguments if isinstance(arguments, str) else dict(arguments)
        return client.tools.resolve_function_call(name, sent, self.session_id, self.namespace, self.user_id)


def tool_schemas(tools: Sequence[str] | Literal["all"] = "all") -> list[dict[str, Any]]:
    """`name`, `description` and `parameters` of all tools or of those named. Raises ValueError for a name that there is not."""
    names = list(definitions.BY_NAME) if tools == "all" else list(tools)
    unknown = sorted(set(names) - set(definitions.BY_NAME))
    if unknown:
        raise ValueError(f"there is no tool {', '.join(unknown)}, there are {', '.join(definitions.BY_NAME)}")
    return [definitions.BY_NAME[name].schema().to_dict()["function"] for name in names]


def our_message(role: str, text: str, raw: tuple[str, Any], **more: Any) -> MemoryMessage:
    """A message of what was said, with the framework's own as the field that `raw` names.

    Takes any role, text and id that a framework has. Raises MemoryValidationError for what JSON cannot say.
    """
    fields = {name: value for name, value in more.items() if value is not None}
    if "id" in fields:
        fields["id"] = our_id(fields["id"])
    said = {"role": _our_role(role), "content": None if is_blank(text) else text}
    try:
        return MemoryMessage.model_validate({**said, **fields, raw[0]: raw[1]})
    except ValidationError as error:
        raise validation_error(error) from error


def our_id(framework_id: str) -> str:
    """A framework's id of a message as ours: the same, or a digest of one that ours cannot be."""
    try:
        return _ID.validate_python(framework_id)
    except ValidationError:
        return hashlib.blake2b(framework_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _our_role(role: str) -> str:
    return "".join(letter for letter in role if letter.isprintable())[:MAX_ROLE_CHARS].strip() or "user"


def tool_call(call_id: str | None, name: str | None, arguments: str | None) -> dict[str, Any]:
    """A call of a tool as chat APIs have it; `arguments` are JSON."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def raw_of(message: MemoryMessage, field: str) -> dict[str, Any] | None:
    """The framework's message that ours was made of; None for one that came another way."""
    raw = message.own_fields.get(field)
    return cast("dict[str, Any]", raw) if isinstance(raw, dict) else None


def our_session_id(framework_id: str) -> str:
    """A framework's id of a session as ours, which has no "/": the same, or one in which "/" and "%" are percent-encoded."""
    if any(sign in framework_id for sign in ("/", "%2F", "%25")):
        return framework_id.replace("%", "%25").replace("/", "%2F")
    return framework_id


def their_session_id(session_id: str) -> str:
    """The framework's id of a session that `our_session_id` made ours of."""
    return session_id.replace("%2F", "/").replace("%25", "%")


def _windows(limit: int | None) -> list[int | None]:
    """How many messages to ask for, one after the other, until there are `limit`.

    The server leaves out answers of tools whose call is not among the newest messages.
    """
    return [None] if limit is None else [limit, 2 * limit + 50, None] if limit > 0 else []


def _newest(messages: list[MemoryMessage], limit: int | None) -> list[MemoryMessage]:
    return messages if limit is None else messages[-limit:] if limit > 0 else []


def _parts(messages: Sequence[MemoryMessage]) -> list[Sequence[MemoryMessage]]:
    return [messages[start : start + MAX_APPENDED_MESSAGES] for start in range(0, len(messages), MAX_APPENDED_MESSAGES)]


def _lines(prompt: Any) -> str:
    # The last message is the question itself.
    return "\n\n".join(message["content"] for message in prompt.to_openai()[:-1]) if prompt.long_term_memories else ""
