"""Sessions, tools and memory for the OpenAI Agents SDK."""

# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, cast

from agent_memory_client.integrations._shared import AnyClient, Recall, SessionMessages, Tools, our_message, tool_call, tool_schemas
from agent_memory_client.models import MemoryMessage

try:
    from agents import FunctionTool
    from agents.memory import SessionSettings
    from agents.run import CallModelData, ModelInputData
except ImportError as error:
    raise ImportError("the session needs openai-agents: pip install 'agent-memory-api-client[openai-agents]'") from error

ITEM = "agents_item"
"""The message field that contains the Agents SDK's own item."""


class AgentMemorySession:
    """An Agents SDK `Session` that is stored on the server under `session_id`.

    Items are returned exactly as they were added, including tool calls and reasoning, and become
    long-term memories.
    """

    def __init__(
        self,
        session_id: str,
        client: AnyClient,
        *,
        user_id: str | None = None,
        namespace: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._messages = SessionMessages(client, session_id, user_id, namespace)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return all items, or only the newest `limit` items, oldest first."""
        limit = self.session_settings.limit if limit is None and self.session_settings is not None else limit
        if limit is not None and limit <= 0:
            return []
        return [item_of(message) for message in await self._messages.aread(limit)]

    async def add_items(self, items: Sequence[Any]) -> None:
        await self._messages.aappend([message_of(item) for item in items])

    async def pop_item(self) -> Any | None:
        """Remove and return the newest item, or None if the session is empty."""
        message = await self._messages.apop()
        return None if message is None else item_of(message)

    async def clear_session(self) -> None:
        """Delete all items, but not the memories derived from them."""
        await self._messages.adelete()


def message_of(item: Any) -> MemoryMessage:
    """Convert an item to a message with its text, its tool calls, and the original item."""
    raw = cast("dict[str, Any]", json.loads(json.dumps(item)))
    kind, role = raw.get("type", "message"), raw.get("role")
    if kind == "function_call":
        call = tool_call(raw.get("call_id"), raw.get("name"), raw.get("arguments"))
        return our_message("assistant", "", (ITEM, raw), tool_calls=[call])
    if kind == "function_call_output":
        text = raw["output"] if isinstance(raw.get("output"), str) else ""
        return our_message("tool", text, (ITEM, raw), tool_call_id=raw.get("call_id"))
    if kind != "message" or not isinstance(role, str):
        # Reasoning and similar items do not have a speaker.
        return our_message("tool", "", (ITEM, raw))
    return our_message(role, _text(raw.get("content")), (ITEM, raw))


def item_of(message: MemoryMessage) -> dict[str, Any]:
    """Return the original item in a message, or build one if another program wrote the message."""
    raw = message.own_fields.get(ITEM)
    if isinstance(raw, dict):
        return cast("dict[str, Any]", raw)
    role = message.role if message.role in ("user", "assistant", "system", "developer") else "user"
    return {"role": role, "content": message.content}


def get_memory_tools(
    client: AnyClient,
    session_id: str,
    user_id: str | None = None,
    namespace: str | None = None,
    tools: Sequence[str] | Literal["all"] = "all",
) -> list[FunctionTool]:
    """Return all memory tools, or only `tools`, for one user and namespace.

    The tools report errors to the model. Raises ValueError for an unknown tool name.
    """
    memory_tools = Tools(client, session_id, user_id, namespace)
    return [_tool(memory_tools, schema) for schema in tool_schemas(tools)]


def _tool(tools: Tools, schema: Mapping[str, Any]) -> FunctionTool:
    async def invoke(_context: Any, arguments: str) -> str:
        return (await tools.acall(schema["name"], arguments or "{}"))["formatted_response"]

    return FunctionTool(
        name=schema["name"],
        description=schema["description"],
        params_json_schema=schema["parameters"],
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def memory_filter(
    client: AnyClient, *, user_id: str | None = None, namespace: str | None = None, limit: int = 5, needed: bool = False
) -> Callable[[CallModelData[Any]], Awaitable[ModelInputData]]:
    """Return a hook that adds memories to the instructions.

    Use `RunConfig(call_model_input_filter=memory_filter(…))`. If the server is unavailable, the
    hook adds nothing, or raises MemoryUnavailableError if `needed` is True.
    """
    recall = Recall(client, user_id, namespace, limit=limit, needed=needed)

    async def add_memories(data: CallModelData[Any]) -> ModelInputData:
        model_data = data.model_data
        lines = await recall.alines(_last_user_text(model_data.input))
        if not lines:
            return model_data
        return ModelInputData(
            input=model_data.input, instructions="\n\n".join([*([model_data.instructions] if model_data.instructions else []), lines])
        )

    return add_memories


def _last_user_text(items: Sequence[Any]) -> str:
    for item in reversed(items):
        if isinstance(item, dict) and cast("dict[str, Any]", item).get("role") == "user":
            return _text(cast("dict[str, Any]", item).get("content"))
    return ""


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    texts = [cast("Mapping[str, Any]", part).get("text") for part in parts if isinstance(part, Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str) and text)
