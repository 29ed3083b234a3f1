"""A chat message store, memory and tools for Haystack. Needs the extra: `pip install 'agent-memory-api-client[haystack]'`."""

# haystack-ai is an extra, which need not be there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUntypedBaseClass=false, reportUnknownVariableType=false

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from agent_memory_client.integrations._shared import Recall, SessionMessages, Tools, our_message, raw_of, tool_call, tool_schemas
from agent_memory_client.memory_client import MemoryClient
from agent_memory_client.models import MemoryMessage
from agent_memory_client.sync import SyncMemoryClient

try:
    from haystack.dataclasses import ChatMessage
    from haystack.tools import Tool
except ImportError as error:
    raise ImportError("the chat message store needs haystack-ai: pip install 'agent-memory-api-client[haystack]'") from error

MESSAGE = "haystack_message"
"""The field of a message that holds Haystack's message as it was written."""


class AgentMemoryChatMessageStore:
    """Chat messages by conversation (`chat_history_id`), each a session of the memory server of the same id.

    Messages come back as they were written, calls of tools among them, and what was said is promoted to long-term memory as in any session,
    under `user_id` and `namespace`. Either client serves all calls. Calls raise the errors of `agent_memory_client.errors`.
    """

    def __init__(self, client: MemoryClient | SyncMemoryClient, *, user_id: str | None = None, namespace: str | None = None) -> None:
        self._client = client
        self._user_id = user_id
        self._namespace = namespace

    def write_messages(self, chat_history_id: str, messages: Sequence[ChatMessage]) -> int:
        """Adds messages at the end, and returns how many those are."""
        self._session(chat_history_id).append([_our(message) for message in messages])
        return len(messages)

    async def write_messages_async(self, chat_history_id: str, messages: Sequence[ChatMessage]) -> int:
        """As `write_messages`."""
        await self._session(chat_history_id).aappend([_our(message) for message in messages])
        return len(messages)

    def retrieve_messages(self, chat_history_id: str, last_k: int | None = None) -> list[ChatMessage]:
        """The messages, oldest first; with `last_k` the newest so many."""
        return [_their(message) for message in self._session(chat_history_id).read(last_k)]

    async def retrieve_messages_async(self, chat_history_id: str, last_k: int | None = None) -> list[ChatMessage]:
        """As `retrieve_messages`."""
        return [_their(message) for message in await self._session(chat_history_id).aread(last_k)]

    def delete_messages(self, chat_history_id: str) -> None:
        """Takes all messages away; what became long-term memory of them stays."""
        self._session(chat_history_id).delete()

    async def delete_messages_async(self, chat_history_id: str) -> None:
        """As `delete_messages`."""
        await self._session(chat_history_id).adelete()

    def _session(self, chat_history_id: str) -> SessionMessages:
        return SessionMessages(self._client, chat_history_id, self._user_id, self._namespace)


class AgentMemoryRecall:
    """What is remembered of a user, as system messages to put before the user's: none when nothing fits.

    While the server is away there are none, unless they are `needed`.
    """

    def __init__(
        self,
        client: MemoryClient | SyncMemoryClient,
        *,
        user_id: str | None = None,
        namespace: str | None = None,
        limit: int = 5,
        needed: bool = False,
    ) -> None:
        self._recall = Recall(client, user_id, namespace, limit=limit, needed=needed)

    def run(self, query: str) -> list[ChatMessage]:
        """The messages for what the user said."""
        lines = self._recall.lines(query)
        return [ChatMessage.from_system(lines)] if lines else []

    async def run_async(self, query: str) -> list[ChatMessage]:
        """As `run`."""
        lines = await self._recall.alines(query)
        return [ChatMessage.from_system(lines)] if lines else []


def get_memory_tools(
    client: MemoryClient | SyncMemoryClient,
    session_id: str,
    user_id: str | None = None,
    namespace: str | None = None,
    tools: Sequence[str] | Literal["all"] = "all",
) -> list[Tool]:
    """The memory tools, all or those named, for an `Agent`; `user_id` and `namespace` bind the model. What fails is told to the model.

    Raises ValueError for a name that there is not.
    """
    calls = Tools(client, session_id, user_id, namespace)

    def tool(schema: dict[str, Any]) -> Tool:
        def call(**arguments: Any) -> str:
            return calls.call(schema["name"], arguments)["formatted_response"]

        async def acall(**arguments: Any) -> str:
            return (await calls.acall(schema["name"], arguments))["formatted_response"]

        return Tool(schema["name"], schema["description"], schema["parameters"], function=call, async_function=acall)

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
