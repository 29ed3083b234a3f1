"""Chat stores and a memory block for LlamaIndex."""

# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agent_memory_client.integrations._shared import AnyClient, EitherClient, Recall, our_message, raw_of, tool_call
from agent_memory_client.models import MemoryMessage

try:
    from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.storage.chat_store.base import BaseChatStore
    from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
    from pydantic import PrivateAttr
except ImportError as error:
    raise ImportError("the chat stores need llama-index-core: pip install 'agent-memory-api-client[llama-index]'") from error

MESSAGE = "llama_index_message"
"""The message field that contains LlamaIndex's own message."""
STATUS = "llama_index_status"
"""The field for a message's status in LlamaIndex's `Memory`.

The status is "archived" once the message has left the queue.
"""


class AgentMemoryChatStore(BaseChatStore):
    """A `BaseChatStore`. Each key is a session id.

    Messages are returned exactly as they were set, including tool calls. They become long-term
    memories for `user_id` and `namespace`. Blocking and awaited calls work with both clients.
    """

    _access: EitherClient = PrivateAttr()

    def __init__(self, client: AnyClient, *, user_id: str | None = None, namespace: str | None = None) -> None:
        super().__init__()
        self._access = EitherClient(client, user_id, namespace)

    @classmethod
    def class_name(cls) -> str:
        return "AgentMemoryChatStore"

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        self._access.session(key).replace(_ours(messages))

    async def aset_messages(self, key: str, messages: list[ChatMessage]) -> None:
        await self._access.session(key).areplace(_ours(messages))

    def get_messages(self, key: str) -> list[ChatMessage]:
        return _chat_messages(self._access.session(key).read())

    async def aget_messages(self, key: str) -> list[ChatMessage]:
        return _chat_messages(await self._access.session(key).aread())

    def add_message(self, key: str, message: ChatMessage) -> None:
        self._access.session(key).append(_ours([message]))

    async def async_add_message(self, key: str, message: ChatMessage) -> None:
        await self._access.session(key).aappend(_ours([message]))

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """Delete and return all messages for a key, or return None if there are none."""
        messages = self.get_messages(key)
        self._access.session(key).delete()
        return messages or None

    async def adelete_messages(self, key: str) -> list[ChatMessage] | None:
        messages = await self.aget_messages(key)
        await self._access.session(key).adelete()
        return messages or None

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete and return the message at a position, or return None if there is none."""
        return _at(self._access.session(key).change(lambda messages: _without(messages, idx)), idx)

    async def adelete_message(self, key: str, idx: int) -> ChatMessage | None:
        return _at(await self._access.session(key).achange(lambda messages: _without(messages, idx)), idx)

    def delete_last_message(self, key: str) -> ChatMessage | None:
        return self.delete_message(key, -1)

    async def adelete_last_message(self, key: str) -> ChatMessage | None:
        return await self.adelete_message(key, -1)

    def get_keys(self) -> list[str]:
        """Return all session ids for the user and namespace."""
        return self._access.keys()

    async def aget_keys(self) -> list[str]:
        return await self._access.akeys()


class AgentMemoryDBChatStore(AsyncDBChatStore):
    """An `AsyncDBChatStore` on the memory server.

    Use `Memory.from_defaults(session_id=…, chat_store=AgentMemoryDBChatStore(client))`. The
    memory's queue is a session. Messages that leave the queue stay in the session as archived
    messages. `delete_message` includes archived messages when it counts positions.
    """

    _access: EitherClient = PrivateAttr()

    def __init__(self, client: AnyClient, *, user_id: str | None = None, namespace: str | None = None) -> None:
        super().__init__()
        self._access = EitherClient(client, user_id, namespace)

    @classmethod
    def class_name(cls) -> str:
        return "AgentMemoryDBChatStore"

    async def get_messages(
        self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE, limit: int | None = None, offset: int | None = None
    ) -> list[ChatMessage]:
        """Return the messages that have the given status (None: all), oldest first."""
        start = offset or 0
        messages = [message for message in await self._access.session(key).aread() if _has(message, status)]
        return _chat_messages(messages[start:] if limit is None else messages[start : start + limit])

    async def count_messages(self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE) -> int:
        return sum(_has(message, status) for message in await self._access.session(key).aread())

    async def add_message(self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE) -> None:
        await self.add_messages(key, [message], status)

    async def add_messages(self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE) -> None:
        await self._access.session(key).aappend(_ours(messages, status))

    async def set_messages(self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE) -> None:
        await self._access.session(key).areplace(_ours(messages, status))

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        return _at(await self._access.session(key).achange(lambda messages: _without(messages, idx)), idx)

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Delete the messages that have the given status (None: all)."""
        if status is None:
            await self._access.session(key).adelete()
        else:
            await self._access.session(key).achange(lambda messages: [message for message in messages if not _has(message, status)])

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        def change(messages: list[MemoryMessage]) -> list[MemoryMessage]:
            removed_ids = {message.id for message in _queue(messages, n)}
            return [message for message in messages if message.id not in removed_ids]

        return _chat_messages(_queue(await self._access.session(key).achange(change), n))

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        def change(messages: list[MemoryMessage]) -> list[MemoryMessage]:
            leaving = {message.id for message in _queue(messages, n)}
            archived = {STATUS: MessageStatus.ARCHIVED.value}
            return [message.model_copy(update=archived) if message.id in leaving else message for message in messages]

        return _chat_messages(_queue(await self._access.session(key).achange(change), n))

    async def get_keys(self) -> list[str]:
        return await self._access.akeys()


class AgentMemoryBlock(BaseMemoryBlock[str]):
    """A memory block: `Memory.from_defaults(memory_blocks=[AgentMemoryBlock(client)])`.

    `limit` is the maximum number of memories. With an `AgentMemoryDBChatStore`, do not use
    `keep_messages`. With other stores, it saves messages to a session when they leave the queue. If
    the server is unavailable, the block is empty, or raises MemoryUnavailableError if `needed` is
    True.
    """

    keep_messages: bool = False
    _recall: Recall = PrivateAttr()

    def __init__(
        self,
        client: AnyClient,
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
        user_text = next((message.content for message in reversed(messages or []) if message.role == MessageRole.USER), None)
        return await self._recall.alines(user_text or "")

    async def _aput(self, messages: list[ChatMessage]) -> None:
        if not self.keep_messages:
            return
        by_session: dict[str, list[ChatMessage]] = {}
        for message in messages:
            by_session.setdefault(str(message.additional_kwargs.get("session_id", self.name)), []).append(message)
        for session_id, session_messages in by_session.items():
            await self._recall.session(session_id).aappend(_ours(session_messages))


def _ours(messages: Sequence[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE) -> list[MemoryMessage]:
    return [_our(message, status) for message in messages]


def _our(message: ChatMessage, status: MessageStatus) -> MemoryMessage:
    blocks = [block for block in message.blocks if isinstance(block, ToolCallBlock)]
    calls = [tool_call(block.tool_call_id, block.tool_name, _json(block.tool_kwargs)) for block in blocks]
    more = {"tool_calls": calls or None, "tool_call_id": message.additional_kwargs.get("tool_call_id")}
    if status != MessageStatus.ACTIVE:
        more[STATUS] = status.value
    return our_message(message.role.value, message.content or "", (MESSAGE, message.model_dump(mode="json")), **more)


def _chat_messages(messages: Sequence[MemoryMessage]) -> list[ChatMessage]:
    return [_chat_message(message) for message in messages]


def _chat_message(message: MemoryMessage) -> ChatMessage:
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
    return _chat_message(messages[position]) if -len(messages) <= position < len(messages) else None


def _without(messages: list[MemoryMessage], position: int) -> list[MemoryMessage]:
    if -len(messages) <= position < len(messages):
        del messages[position]
    return messages


def _json(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)
