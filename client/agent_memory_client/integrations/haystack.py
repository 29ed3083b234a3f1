"""A chat message store, memory and tools for Haystack."""

# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from agent_memory_client.integrations._shared import AnyClient, EitherClient, Recall, Tools, our_message, raw_of, tool_call, tool_schemas
from agent_memory_client.models import MemoryMessage

try:
    from haystack.dataclasses import ChatMessage
    from haystack.tools import Tool
except ImportError as error:
    raise ImportError("the chat message store needs haystack-ai: pip install 'agent-memory-api-client[haystack]'") from error

MESSAGE = "haystack_message"
"""The message field that contains Haystack's own message."""


class AgentMemoryChatMessageStore:
    """Stores chat messages. Each `chat_history_id` is a session id.

    Messages are returned exactly as they were written, including tool calls, and become long-term
    memories.
    """

    def __init__(self, client: AnyClient, *, user_id: str | None = None, namespace: str | None = None) -> None:
        self._access = EitherClient(client, user_id, namespace)

    def write_messages(self, chat_history_id: str, messages: Sequence[ChatMessage]) -> int:
        """Append messages, and return how many were appended."""
        self._access.session(chat_history_id).append([_our(message) for message in messages])
        return len(messages)

    async def write_messages_async(self, chat_history_id: str, messages: Sequence[ChatMessage]) -> int:
        await self._access.session(chat_history_id).aappend([_our(message) for message in messages])
        return len(messages)

    def retrieve_messages(self, chat_history_id: str, last_k: int | None = None) -> list[ChatMessage]:
        """Return all messages, or only the newest `last_k` messages, oldest first."""
        return [_their(message) for message in self._access.session(chat_history_id).read(last_k)]

    async def retrieve_messages_async(self, chat_history_id: str, last_k: int | None = None) -> list[ChatMessage]:
        return [_their(message) for message in await self._access.session(chat_history_id).aread(last_k)]

    def delete_messages(self, chat_history_id: str) -> None:
        """Delete all messages, but not the memories derived from them."""
        self._access.session(chat_history_id).delete()

    async def delete_messages_async(self, chat_history_id: str) -> None:
        await self._access.session(chat_history_id).adelete()


class AgentMemoryRecall(Recall):
    """A component that returns a user's memories as system messages.

    The list is empty if nothing matches the query. If the server is unavailable, the component
    returns no memories, or raises MemoryUnavailableError if `needed` is True.
    """

    def run(self, query: str) -> list[ChatMessage]:
        lines = self.lines(query)
        return [ChatMessage.from_system(lines)] if lines else []

    async def run_async(self, query: str) -> list[ChatMessage]:
        lines = await self.alines(query)
        return [ChatMessage.from_system(lines)] if lines else []


def get_memory_tools(
    client: AnyClient,
    session_id: str,
    user_id: str | None = None,
    namespace: str | None = None,
    tools: Sequence[str] | Literal["all"] = "all",
) -> list[Tool]:
    """Return all memory tools, or only `tools`, for one user and namespace.

    The tools report errors to the model. Raises ValueError for an unknown name.
    """
    calls = Tools(client, session_id, user_id, namespace)

    def tool(schema: dict[str, Any]) -> Tool:
        def call(**arguments: Any) -> str:
            return calls.call(schema["name"], arguments)["formatted_response"]

        name = schema["name"]
        return Tool(name, schema["description"], schema["parameters"], function=call, async_function=calls.function(name))

    return [tool(schema) for schema in tool_schemas(tools)]


def _our(message: ChatMessage) -> MemoryMessage:
    raw = json.loads(json.dumps(message.to_dict()))
    calls = [tool_call(call.id, call.tool_name, json.dumps(call.arguments, default=str)) for call in message.tool_calls]
    result = message.tool_call_result
    more: dict[str, Any] = {"tool_calls": calls or None, "tool_call_id": None if result is None else result.origin.id}
    return our_message(message.role.value, "\n".join(message.texts), (MESSAGE, raw), **more)


def _their(message: MemoryMessage) -> ChatMessage:
    raw = raw_of(message, MESSAGE)
    role = message.role if message.role in ("user", "assistant", "system") else "user"
    return ChatMessage.from_dict({"role": role, "content": message.content, "meta": {}} if raw is None else raw)
