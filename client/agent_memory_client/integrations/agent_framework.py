"""History and memory for Microsoft's Agent Framework."""

# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from agent_memory_client.errors import MemoryValidationError
from agent_memory_client.integrations._shared import (
    AnyClient,
    EitherClient,
    Recall,
    SessionMessages,
    Tools,
    our_message,
    raw_of,
    tool_call,
    tool_schemas,
)
from agent_memory_client.models import MemoryMessage

try:
    from agent_framework import ContextProvider, FunctionTool, HistoryProvider, Message
except ImportError as error:
    raise ImportError("the providers need agent-framework-core: pip install 'agent-memory-api-client[agent-framework]'") from error

MESSAGE = "agent_framework_message"
"""The message field that contains Agent Framework's own message."""


class AgentMemoryHistoryProvider(HistoryProvider):
    """A `HistoryProvider` that stores messages on the memory server.

    Use `Agent(…, context_providers=[AgentMemoryHistoryProvider(client, user_id="ada")])`. Sessions
    keep the framework's ids. Messages are returned exactly as they were saved, including tool
    calls, and become long-term memories. Other `HistoryProvider` options can be passed as keyword
    arguments.
    """

    DEFAULT_SOURCE_ID = "agent_memory_history"

    def __init__(
        self,
        client: AnyClient,
        source_id: str = DEFAULT_SOURCE_ID,
        *,
        user_id: str | None = None,
        namespace: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(source_id, **options)
        self._access = EitherClient(client, user_id, namespace)

    async def get_messages(self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any) -> list[Message]:
        return [_their(message) for message in await self._session(session_id).aread()]

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        await self._session(session_id).aappend([_our(message) for message in messages])

    async def clear(self, session_id: str) -> None:
        """Delete all messages in a session, but not the memories derived from them."""
        await self._session(session_id).adelete()

    def _session(self, session_id: str | None) -> SessionMessages:
        if session_id is None:
            raise MemoryValidationError("session_id: a history needs the id of a session")
        return self._access.session(session_id)


class AgentMemoryContextProvider(ContextProvider):
    """A `ContextProvider` that adds the user's memories to an agent's instructions.

    `tools` ("all" or a list of names) also gives the agent memory tools, which can access only
    `user_id` and `namespace`. If the server is unavailable, the run continues without memories, or
    raises MemoryUnavailableError if `needed` is True.
    """

    DEFAULT_SOURCE_ID = "agent_memory"

    def __init__(
        self,
        client: AnyClient,
        source_id: str = DEFAULT_SOURCE_ID,
        *,
        user_id: str | None = None,
        namespace: str | None = None,
        limit: int = 5,
        needed: bool = False,
        tools: Sequence[str] | Literal["all"] = (),
    ) -> None:
        super().__init__(source_id)
        self._recall = Recall(client, user_id, namespace, limit=limit, needed=needed)
        self._schemas = tool_schemas(tools)

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        user_text = "\n".join(message.text for message in context.input_messages if message.role == "user" and message.text)
        if lines := await self._recall.alines(user_text):
            context.extend_instructions(self.source_id, lines)
        if self._schemas:
            calls = Tools(self._recall.client, session.session_id, self._recall.user_id, self._recall.namespace)
            context.extend_tools(self.source_id, [_tool(calls, schema) for schema in self._schemas])


def _tool(calls: Tools, schema: dict[str, Any]) -> FunctionTool:
    name = schema["name"]
    return FunctionTool(name=name, description=schema["description"], input_model=schema["parameters"], func=calls.function(name))


def _our(message: Message) -> MemoryMessage:
    contents = message.contents
    calls = [tool_call(each.call_id, each.name or "", _json(each.arguments)) for each in contents if each.type == "function_call"]
    results = [each.call_id for each in contents if each.type == "function_result"]
    more: dict[str, Any] = {"tool_calls": calls or None, "tool_call_id": results[0] if results else None}
    return our_message(str(message.role), message.text or "", (MESSAGE, json.loads(message.to_json())), **more)


def _their(message: MemoryMessage) -> Message:
    raw = raw_of(message, MESSAGE)
    return Message(message.role, [message.content]) if raw is None else Message.from_dict(raw)


def _json(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments or {}, default=str)
