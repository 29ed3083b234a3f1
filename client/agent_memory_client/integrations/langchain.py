"""The tools as LangChain's. Needs the extra: `pip install 'agent-memory-api-client[langchain]'`."""

# langchain-core is an extra, which need not be there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from agent_memory_client._tools import definitions
from agent_memory_client._tools.calls import ToolCallResolutionResult
from agent_memory_client.memory_client import MemoryClient
from agent_memory_client.sync import SyncMemoryClient

try:
    from langchain_core.tools import StructuredTool, ToolException
except ImportError as error:
    raise ImportError("the LangChain tools need langchain-core: pip install 'agent-memory-api-client[langchain]'") from error


def get_memory_tools(
    memory_client: MemoryClient | SyncMemoryClient,
    session_id: str,
    user_id: str | None = None,
    namespace: str | None = None,
    tools: Sequence[str] | Literal["all"] = "all",
) -> list[StructuredTool]:
    """The tools of a conversation, all nine or those named; each answers with text for the model.

    `user_id` and `namespace` bind the model (see `resolve_tool_call`). With a `MemoryClient` the tools are to be awaited
    (`ainvoke`); with a `SyncMemoryClient` they are called (`invoke`), and LangChain awaits them in a thread. What goes wrong is
    told to the model. Raises ValueError for a name that is not one of the nine.
    """
    names = list(definitions.BY_NAME) if tools == "all" else list(tools)
    unknown = sorted(set(names) - set(definitions.BY_NAME))
    if unknown:
        raise ValueError(f"there is no tool {', '.join(unknown)}, there are {', '.join(definitions.BY_NAME)}")
    return [_tool(memory_client, name, session_id, namespace, user_id) for name in names]


get_memory_tools_langchain = get_memory_tools


def _tool(
    client: MemoryClient | SyncMemoryClient, name: str, session_id: str, namespace: str | None, user_id: str | None
) -> StructuredTool:
    async def awaited(**arguments: Any) -> str:
        assert isinstance(client, MemoryClient)
        return _text(await client.tools.resolve_function_call(name, arguments, session_id, namespace, user_id))

    def called(**arguments: Any) -> str:
        assert isinstance(client, SyncMemoryClient)
        return _text(client.tools.resolve_function_call(name, arguments, session_id, namespace, user_id))

    definition = definitions.BY_NAME[name]
    return StructuredTool(
        name=name,
        description=definition.description,
        args_schema=definition.schema().to_dict()["function"]["parameters"],
        func=called if isinstance(client, SyncMemoryClient) else None,
        coroutine=awaited if isinstance(client, MemoryClient) else None,
        handle_tool_error=True,
    )


def _text(result: ToolCallResolutionResult) -> str:
    if not result["success"]:
        raise ToolException(result["formatted_response"])
    return result["formatted_response"]
