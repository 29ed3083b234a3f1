"""Memory middleware for AgentScope 2.x.

Install the extra with `pip install 'agent-memory-api-client[agentscope]'`. For AgentScope 1.x, use
`agent_memory_client.integrations.agentscope`.
"""

# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, Literal

from agent_memory_client.errors import MemoryUnavailableError
from agent_memory_client.integrations._shared import AnyClient, Recall, SessionMessages, Tools, our_message, raw_of, tool_call, tool_schemas
from agent_memory_client.models import MemoryMessage

try:
    from agentscope.message import Msg, TextBlock, ToolResultState
    from agentscope.middleware import MiddlewareBase
    from agentscope.permission import PermissionBehavior, PermissionDecision
    from agentscope.tool import ToolBase, ToolChunk
except ImportError as error:
    raise ImportError("the middleware needs agentscope 2.x: pip install 'agent-memory-api-client[agentscope]' 'agentscope>=2'") from error

MESSAGE = "agentscope_message"
"""The message field that contains AgentScope's own message."""


class AgentMemoryMiddleware(MiddlewareBase):
    """Middleware that stores a conversation and adds the user's memories to the system prompt.

    Use `Agent(…, middlewares=[AgentMemoryMiddleware("monday", client, user_id="ada")])`. To give
    the agent the memory tools, use `Toolkit(tools=await middleware.list_tools())`. `history`
    returns the messages, including tool calls. If the server is unavailable, the middleware does
    nothing, or raises MemoryUnavailableError if `needed` is True.
    """

    def __init__(
        self,
        session_id: str,
        client: AnyClient,
        *,
        user_id: str | None = None,
        namespace: str | None = None,
        limit: int = 5,
        needed: bool = False,
        tools: Sequence[str] | Literal["all"] = "all",
    ) -> None:
        self._session = SessionMessages(client, session_id, user_id, namespace)
        self._recall = Recall(client, user_id, namespace, limit=limit, needed=needed)
        self._tools = Tools(client, session_id, user_id, namespace)
        self._schemas = tool_schemas(tools)

    async def on_reply(
        self, agent: Any, input_kwargs: dict[str, Any], next_handler: Callable[..., AsyncGenerator[Any, None]]
    ) -> AsyncGenerator[Any, None]:
        """Store the user's messages, the tool calls with their results, and the reply."""
        earlier_ids = {message.id for message in agent.state.context}
        async for event in next_handler(**input_kwargs):
            yield event
        await self.keep([message for message in agent.state.context if message.id not in earlier_ids])

    async def on_system_prompt(self, agent: Any, current_prompt: str) -> str:
        context: Sequence[Any] = agent.state.context
        user_text = next((message.get_text_content() for message in reversed(context) if message.role == "user"), None)
        lines = await self._recall.alines(user_text or "")
        return f"{current_prompt}\n\n{lines}" if lines else current_prompt

    async def list_tools(self) -> list[ToolBase]:
        """Return the memory tools for this user and namespace, which report errors to the model."""
        return [_MemoryTool(self._tools, schema) for schema in self._schemas]

    async def keep(self, messages: Sequence[Msg]) -> None:
        """Add messages to the session, skipping messages that are already stored."""
        try:
            await self._session.aappend([_our(message) for message in messages])
        except MemoryUnavailableError:
            if self._recall.needed:
                raise

    async def history(self, limit: int | None = None) -> list[Msg]:
        """Return all messages, or only the newest `limit` messages, oldest first."""
        return [_their(message) for message in await self._session.aread(limit)]

    async def clear(self) -> None:
        """Delete all messages, but not the memories derived from them."""
        await self._session.adelete()


class _MemoryTool(ToolBase):
    is_concurrency_safe = True
    is_read_only = False

    def __init__(self, tools: Tools, schema: dict[str, Any]) -> None:
        super().__init__()
        self.name = schema["name"]
        self.description = schema["description"]
        self.input_schema = schema["parameters"]
        self._calls = tools

    async def check_permissions(self, *_args: Any, **_kwargs: Any) -> PermissionDecision:
        return PermissionDecision(behavior=PermissionBehavior.ALLOW, message="a memory tool of this user")

    async def call(self, **arguments: Any) -> ToolChunk:
        result = await self._calls.acall(self.name, arguments)
        state = {} if result["success"] else {"state": ToolResultState.ERROR}
        return ToolChunk(content=[TextBlock(text=result["formatted_response"])], **state)


def _our(message: Msg) -> MemoryMessage:
    blocks = message.get_content_blocks("tool_call")
    calls = [tool_call(block.id, block.name, block.input if isinstance(block.input, str) else json.dumps(block.input)) for block in blocks]
    text = message.get_text_content() or ""
    return our_message(message.role, text, (MESSAGE, message.model_dump(mode="json")), id=message.id, tool_calls=calls or None)


def _their(message: MemoryMessage) -> Msg:
    raw = raw_of(message, MESSAGE)
    if raw is not None:
        return Msg.model_validate(raw)
    role = message.role if message.role in ("user", "assistant", "system") else "user"
    return Msg(id=message.id, name=message.role, role=role, content=[TextBlock(text=message.content)])
