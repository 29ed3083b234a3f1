"""Chat stores and a memory block for LlamaIndex. Needs the extra: `pip install 'agent-memory-api-client[llama-index]'`."""

# llama-index-core is an extra, which need not be there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUntypedBaseClass=false, reportUnknownVariableType=false

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agent_memory_client.integrations._shared import Recall, SessionMessages, our_message, raw_of, tool_call
from agent_memory_client.memory_client import MemoryClient
from agent_memory_client.models import MemoryMessage
from agent_memory_client.sync import SyncMemoryClient

try:
    from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.storage.chat_store.base import BaseChatStore
    from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
    from pydantic import PrivateAttr
except ImportError as error:
    raise ImportError("the chat stores need llama-index-core: pip install 'agent-memory-api-client[llama-index]'") from error

MESSAGE = "llama_index_message"
"""The field of a message that holds LlamaIndex's message as it was added."""
STATUS = "llama_index_status"
"""The field that says that a message has left the queue of LlamaIndex's `Memory`: "archived"."""


class AgentMemoryChatStore(BaseChatStore):
    """A `BaseChatStore`: each key is a session of the memory server, every message comes back as it was set, tool calls among them.

    What was said is promoted to long-term memory as in any session, under `user_id` and `namespace`; stores of different users never meet.
    Both kinds of calls work with either client. Calls raise the errors of `agent_memory_client.errors`.
    """

    _owner: tuple[Any, str | None, str | None] = PrivateAttr()

    def __init__(self, client: MemoryClient | SyncMemoryClient, *, user_id: str | None = None, namespace: str | None = None) -> None:
        super().__init__()
        self._owner = (client, user_id, namespace)

    @classmethod
    def class_name(cls) -> str:
        """The name that LlamaIndex writes down."""
        return "AgentMemoryChatStore"

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Stores messages in place of all of a key."""
        self._session(key).replace(_ours(messages))

    async def aset_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """As `set_messages`."""
        await self._session(key).areplace(_ours(messages))

    def get_messages(self, key: str) -> list[ChatMessage]:
        """The messages of a key, oldest first."""
        return _theirs(self._session(key).read())

    async def aget_messages(self, key: str) -> list[ChatMessage]:
        """As `get_messages`."""
        return _theirs(await self._session(key).aread())

    def add_message(self, key: str, message: ChatMessage) -> None:
        """Adds a message at the end."""
        self._session(key).append(_ours([message]))

    async def async_add_message(self, key: str, message: ChatMessage) -> None:
        """As `add_message`."""
        await self._session(key).aappend(_ours([message]))

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """Takes all messages of a key away and returns them; None when there are none."""
        messages = self.get_messages(key)
        self._session(key).delete()
        return messages or None

    async def adelete_messages(self, key: str) -> list[ChatMessage] | None:
        """As `delete_messages`."""
        messages = await self.aget_messages(key)
        await self._session(key).adelete()
        return messages or None

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Takes the message at a position away and returns it; None when there is none."""
        return _at(self._session(key).change(lambda messages: _without(messages, idx)), idx)

    async def adelete_message(self, key: str, idx: int) -> ChatMessage | None:
        """As `delete_message`."""
        return _at(await self._session(key).achange(lambda messages: _without(messages, idx)), idx)

    def delete_last_message(self, key: str) -> ChatMessage | None:
        """Takes the newest message away and returns it; None when there is none."""
        return self.delete_message(key, -1)

    async def adelete_last_message(self, key: str) -> ChatMessage | None:
        """As `delete_last_message`."""
        return await self.adelete_message(key, -1)

    def get_keys(self) -> list[str]:
        """The keys: the ids of all sessions of the user and namespace."""
        return self._session("-").keys()

    async def aget_keys(self) -> list[str]:
        """As `get_keys`."""
        return await self._session("-").akeys()

    def _session(self, key: str) -> SessionMessages:
        client, user_id, namespace = self._owner
        return SessionMessages(client, key, user_id, namespace)


class AgentMemoryDBChatStore(AsyncDBChatStore):
    """An `AsyncDBChatStore` for LlamaIndex's `Memory`: `Memory.from_defaults(session_id=…, chat_store=AgentMemoryDBChatStore(client))`.

    The queue of the memory is a session of the memory server; what leaves the queue stays in the session as archived. Whose, which client
    and errors as with `AgentMemoryChatStore`; `delete_message` counts positions among all messages.
    """

    _owner: tuple[Any, str | None, str | None] = PrivateAttr()

    def __init__(self, client: MemoryClient | SyncMemoryClient, *, user_id: str | None = None, namespace: str | None = None) -> None:
        super().__init__()
        self._owner = (client, user_id, namespace)

    @classmethod
    def class_name(cls) -> str:
        """The name that LlamaIndex writes down."""
        return "AgentMemoryDBChatStore"

    async def get_messages(
        self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE, limit: int | None = None, offset: int | None = None
    ) -> list[ChatMessage]:
        """The messages of a status (None: of any), oldest first."""
        start = offset or 0
        messages = [message for message in await self._session(key).aread() if _has(message, status)]
        return _theirs(messages[start:] if limit is None else messages[start : start + limit])

    async def count_messages(self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE) -> int:
        """How many messages of a status there are."""
        return sum(_has(message, status) for message in await self._session(key).aread())

    async def add_message(self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE) -> None:
        """Adds a message at the end."""
        await self.add_messages(key, [message], status)

    async def add_messages(self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE) -> None:
        """Adds messages at the end."""
        await self._session(key).aappend(_ours(messages, status))

    async def set_messages(self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE) -> None:
        """Stores messages in place of all of a key."""
        await self._session(key).areplace(_ours(messages, status))

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Takes the message at a position away and returns it; None when there is none."""
        return _at(await self._session(key).achange(lambda messages: _without(messages, idx)), idx)

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Takes the messages of a status (None: of any) away."""
        if status is None:
            await self._session(key).adelete()
        else:
            await self._session(key).achange(lambda messages: [message for message in messages if not _has(message, status)])

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Takes the oldest active messages away and returns them."""

        def change(messages: list[MemoryMessage]) -> list[MemoryMessage]:
            gone = {message.id for message in _queue(messages, n)}
            return [message for message in messages if message.id not in gone]

        return _theirs(_queue(await self._session(key).achange(change), n))

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Takes the oldest active messages out of the queue, and returns them."""

        def change(messages: list[MemoryMessage]) -> list[MemoryMessage]:
            leaving = {message.id for message in _queue(messages, n)}
            archived = {STATUS: MessageStatus.ARCHIVED.value}
            return [message.model_copy(update=archived) if message.id in leaving else message for message in messages]

        return _theirs(_queue(await self._session(key).achange(change), n))

    async def get_keys(self) -> list[str]:
        """The keys: the ids of all sessions of the user and namespace."""
        return await self._session("-").akeys()

    def _session(self, key: str) -> SessionMessages:
        client, user_id, namespace = self._owner
        return SessionMessages(client, key, user_id, namespace)


class AgentMemoryBlock(BaseMemoryBlock[str]):
    """A memory block with what is remembered of the user, by what the user said last: `Memory.from_defaults(memory_blocks=[…])`.

    `limit` is how many memories come. Messages that leave the queue are in the session already where an `AgentMemoryDBChatStore` keeps
    it; beside another chat store `keep_messages=True` adds them to the session of the memory's id. While the server is away there are no
    memories, unless they are `needed`.
    """

    keep_messages: bool = False
    _recall: Recall = PrivateAttr()

    def __init__(
        self,
        client: MemoryClient | SyncMemoryClient,
        *,
        user_id: str | None = None,
        namespace: str | None = None,
        limit: int = 5,
        needed: bool = False,
        **fields: Any,
    ) -> None:
        super().__init__(**({"name": "agent_memory"} | fields))
        self._recall = Recall(client, user_id, namespace, limit=limit, needed=needed)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        said = next((message.content for message in reversed(messages or []) if message.role == MessageRole.USER), None)
        return await self._recall.alines(said or "")

    async def _aput(self, messages: list[ChatMessage]) -> None:
        if not self.keep_messages:
            return
        by_session: dict[str, list[ChatMessage]] = {}
        for message in messages:
            by_session.setdefault(str(message.additional_kwargs.get("session_id", self.name)), []).append(message)
        for session_id, said in by_session.items():
            session = SessionMessages(self._recall.client, session_id, self._recall.user_id, self._recall.namespace)
            await session.aappend(_ours(said))


def _ours(messages: Sequence[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE) -> list[MemoryMessage]:
    return [_our(message, status) for message in messages]


def _our(message: ChatMessage, status: MessageStatus) -> MemoryMessage:
    blocks = [block for block in message.blocks if isinstance(block, ToolCallBlock)]
    calls = [tool_call(block.tool_call_id, block.tool_name, _json(block.tool_kwargs)) for block in blocks]
    more = {"tool_calls": calls or None, "tool_call_id": message.additional_kwargs.get("tool_call_id")}
    if status != MessageStatus.ACTIVE:
        more[STATUS] = status.value
    return our_message(message.role.value, message.content or "", (MESSAGE, message.model_dump(mode="json")), **more)


def _theirs(messages: Sequence[MemoryMessage]) -> list[ChatMessage]:
    return [_their(message) for message in messages]


def _their(message: MemoryMessage) -> ChatMessage:
    raw = raw_of(message, MESSAGE)
    if raw is not None:
        return ChatMessage.model_validate(raw)
    role = message.role if message.role in {each.value for each in MessageRole} else MessageRole.USER
    return ChatMessage(role=role, content=message.content)


def _has(message: MemoryMessage, status: MessageStatus | None) -> bool:
    return status is None or message.own_fields.get(STATUS, MessageStatus.ACTIVE.value) == status.value


def _queue(messages: Sequence[MemoryMessage], count: int) -> list[MemoryMessage]:
    return [message for message in messages if _has(message, MessageStatus.ACTIVE)][: max(count, 0)]


def _at(messages: Sequence[MemoryMessage], position: int) -> ChatMessage | None:
    return _their(messages[position]) if -len(messages) <= position < len(messages) else None


def _without(messages: list[MemoryMessage], position: int) -> list[MemoryMessage]:
    if -len(messages) <= position < len(messages):
        del messages[position]
    return messages


def _json(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)
