"""Message history, tools and memory for Pydantic AI."""

# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from agent_memory_client.integrations._shared import AnyClient, Recall, SessionMessages, Tools, our_message, raw_of, tool_call, tool_schemas
from agent_memory_client.models import MemoryMessage

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
"""The message field that contains Pydantic AI's own message."""


class AgentMemoryHistory:
    """A conversation's message history, stored on the server in session `session_id`.

    To continue the conversation, call `agent.run(…, message_history=await history.get())`, and then
    `await history.add(result.new_messages())`. Messages are returned exactly as they were added,
    and become long-term memories. With `agent.run_sync`, use `get_sync`, `add_sync` and
    `clear_sync`.
    """

    def __init__(self, session_id: str, client: AnyClient, *, user_id: str | None = None, namespace: str | None = None) -> None:
        self.session_id = session_id
        self._session = SessionMessages(client, session_id, user_id, namespace)

    async def get(self, limit: int | None = None) -> list[ModelMessage]:
        """Return all messages, or only the newest `limit` messages, oldest first."""
        return [_model_message(message) for message in await self._session.aread(limit)]

    def get_sync(self, limit: int | None = None) -> list[ModelMessage]:
        return [_model_message(message) for message in self._session.read(limit)]

    async def add(self, messages: Sequence[ModelMessage]) -> None:
        await self._session.aappend(_ours(messages))

    def add_sync(self, messages: Sequence[ModelMessage]) -> None:
        self._session.append(_ours(messages))

    async def clear(self) -> None:
        """Delete all messages, but not the memories derived from them."""
        await self._session.adelete()

    def clear_sync(self) -> None:
        self._session.delete()


def get_memory_toolset(
    client: AnyClient,
    session_id: str,
    user_id: str | None = None,
    namespace: str | None = None,
    tools: Sequence[str] | Literal["all"] = "all",
) -> FunctionToolset[Any]:
    """Return all memory tools, or only `tools`, for one user and namespace.

    Use `Agent(toolsets=[…])`. The tools report errors to the model. Raises ValueError for an
    unknown tool name.
    """
    calls = Tools(client, session_id, user_id, namespace)
    schemas = tool_schemas(tools)
    return FunctionToolset(
        [Tool.from_schema(calls.function(each["name"]), each["name"], each["description"], each["parameters"]) for each in schemas]
    )


def memory_instructions(
    client: AnyClient, *, user_id: str | None = None, namespace: str | None = None, limit: int = 5, needed: bool = False
) -> Callable[[RunContext[Any]], Awaitable[str]]:
    """Return a function that returns the user's memories as instructions.

    Use `Agent(instructions=[…, memory_instructions(client)])`. If the server is unavailable, the
    function returns no memories, or raises MemoryUnavailableError if `needed` is True.
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


def _model_message(message: MemoryMessage) -> ModelMessage:
    raw = raw_of(message, MESSAGE)
    if raw is not None:
        return ModelMessagesTypeAdapter.validate_python([raw])[0]
    if message.role == "assistant":
        return ModelResponse(parts=[TextPart(message.content)])
    part = SystemPromptPart(message.content) if message.role == "system" else UserPromptPart(message.content)
    return ModelRequest(parts=[part])
