"""Message history, tools and memory for Pydantic AI. Needs the extra: `pip install 'agent-memory-api-client[pydantic-ai]'`."""

# pydantic-ai is an optional extra.
# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from agent_memory_client.integrations._shared import Recall, SessionMessages, Tools, our_message, raw_of, tool_call, tool_schemas
from agent_memory_client.memory_client import MemoryClient
from agent_memory_client.models import MemoryMessage
from agent_memory_client.sync import SyncMemoryClient

try:
    from pydantic_ai import FunctionToolset, RunContext, Tool
    from pydantic_ai.messages import (
        ModelMessage,
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )
except ImportError as error:
    raise ImportError("the message history needs pydantic-ai: pip install 'agent-memory-api-client[pydantic-ai]'") from error

MESSAGE = "pydantic_ai_message"
"""The message field with Pydantic AI's own message."""


class AgentMemoryHistory:
    """The message history of a conversation, stored in a session with the same id on the server.

    `agent.run(…, message_history=await history.get())` continues the conversation. Then call `await
    history.add(result.new_messages())`. Messages return as they were added, and are promoted to long-term memory. Use
    `get_sync`, `add_sync` and `clear_sync` with `agent.run_sync`. Calls raise the errors of
    `agent_memory_client.errors`.
    """

    def __init__(
        self,
        session_id: str,
        client: MemoryClient | SyncMemoryClient,
        *,
        user_id: str | None = None,
        namespace: str | None = None,
    ) -> None:
        self.session_id = session_id
        self._session = SessionMessages(client, session_id, user_id, namespace)

    async def get(self, limit: int | None = None) -> list[ModelMessage]:
        """Return messages, oldest first. With a limit, return only the newest."""
        return [_theirs(message) for message in await self._session.aread(limit)]

    def get_sync(self, limit: int | None = None) -> list[ModelMessage]:
        return [_theirs(message) for message in self._session.read(limit)]

    async def add(self, messages: Sequence[ModelMessage]) -> None:
        await self._session.aappend(_ours(messages))

    def add_sync(self, messages: Sequence[ModelMessage]) -> None:
        self._session.append(_ours(messages))

    async def clear(self) -> None:
        """Delete all messages. Memories made from them stay."""
        await self._session.adelete()

    def clear_sync(self) -> None:
        self._session.delete()


def get_memory_toolset(
    client: MemoryClient | SyncMemoryClient,
    session_id: str,
    user_id: str | None = None,
    namespace: str | None = None,
    tools: Sequence[str] | Literal["all"] = "all",
) -> FunctionToolset[Any]:
    """Return all memory tools, or the named ones, for `Agent(toolsets=[…])`, bound to `user_id` and `namespace`.

    Errors are reported to the model. Raises ValueError for an unknown name.
    """
    calls = Tools(client, session_id, user_id, namespace)

    def tool(schema: dict[str, Any]) -> Tool[Any]:
        async def call(**arguments: Any) -> str:
            return (await calls.acall(schema["name"], arguments))["formatted_response"]

        return Tool.from_schema(call, schema["name"], schema["description"], schema["parameters"])

    return FunctionToolset([tool(schema) for schema in tool_schemas(tools)])


def memory_instructions(
    client: MemoryClient | SyncMemoryClient,
    *,
    user_id: str | None = None,
    namespace: str | None = None,
    limit: int = 5,
    needed: bool = False,
) -> Callable[[RunContext[Any]], Awaitable[str]]:
    """Return instructions with the user's memories.

    Use them in `Agent(instructions=[…, memory_instructions(client)])`.
    While the server is unavailable, return no memories. With `needed`, raise MemoryUnavailableError.
    """
    recall = Recall(client, user_id, namespace, limit=limit, needed=needed)

    async def remembered(context: RunContext[Any]) -> str:
        return await recall.alines(_prompt_text(context.prompt))

    return remembered


def _prompt_text(prompt: Any) -> str:
    if isinstance(prompt, str):
        return prompt
    texts = [part if isinstance(part, str) else getattr(part, "content", None) for part in prompt or ()]
    return "\n".join(text for text in texts if isinstance(text, str))


def _ours(messages: Sequence[ModelMessage]) -> list[MemoryMessage]:
    raws = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    return [_our(message, raw) for message, raw in zip(messages, raws, strict=True)]


def _our(message: ModelMessage, raw: Any) -> MemoryMessage:
    parts = message.parts
    if isinstance(message, ModelResponse):
        calls = [tool_call(part.tool_call_id, part.tool_name, part.args_as_json_str()) for part in parts if isinstance(part, ToolCallPart)]
        text = "\n".join(part.content for part in parts if isinstance(part, TextPart))
        return our_message("assistant", text, (MESSAGE, raw), tool_calls=calls or None)
    user_text = "\n".join(_prompt_text(part.content) for part in parts if isinstance(part, UserPromptPart))
    if any(isinstance(part, UserPromptPart) for part in parts):
        return our_message("user", user_text, (MESSAGE, raw))
    results = [part for part in parts if isinstance(part, ToolReturnPart)]
    if results:
        call_id = results[0].tool_call_id
        return our_message("tool", "\n".join(part.model_response_str() for part in results), (MESSAGE, raw), tool_call_id=call_id)
    system = "\n".join(part.content for part in parts if isinstance(part, SystemPromptPart))
    return our_message("system" if system else "tool", system, (MESSAGE, raw))


def _theirs(message: MemoryMessage) -> ModelMessage:
    raw = raw_of(message, MESSAGE)
    if raw is not None:
        return ModelMessagesTypeAdapter.validate_python([raw])[0]
    if message.role == "assistant":
        return ModelResponse(parts=[TextPart(message.content)])
    part = SystemPromptPart(message.content) if message.role == "system" else UserPromptPart(message.content)
    return ModelRequest(parts=[part])
