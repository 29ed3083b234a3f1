"""A chat message history, a retriever and tools for LangChain."""

# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from agent_memory_client._tools.calls import ToolCallResolutionResult
from agent_memory_client.integrations._shared import AnyClient, Recall, SessionMessages, Tools, our_message, tool_schemas
from agent_memory_client.models import MemoryMessage, MemoryRecordResult
from agent_memory_client.sync import SyncMemoryClient

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import StructuredTool, ToolException
except ImportError as error:
    raise ImportError("the LangChain adapters need langchain-core: pip install 'agent-memory-api-client[langchain]'") from error


MESSAGE = "langchain_message"
"""The message field that contains LangChain's own message."""
_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "function"}
_TYPES = {"user": "human", "assistant": "ai", "system": "system"}


class AgentMemoryChatMessageHistory(BaseChatMessageHistory):
    """A `BaseChatMessageHistory` stored in a session on the server.

    Messages are returned exactly as they were added, including tool calls. With a `MemoryClient`,
    use the awaited calls (`aget_messages`, `aadd_messages`, `aclear`). With a `SyncMemoryClient`,
    both kinds of calls work.
    """

    def __init__(self, session_id: str, client: AnyClient, *, user_id: str | None = None, namespace: str | None = None) -> None:
        self.session_id = session_id
        self._client = client
        self._session = SessionMessages(client, session_id, user_id, namespace)

    @property
    def messages(self) -> list[BaseMessage]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """All messages, oldest first."""
        _blocking(self._client)
        return [_langchain_message(message) for message in self._session.read()]

    async def aget_messages(self) -> list[BaseMessage]:
        return [_langchain_message(message) for message in await self._session.aread()]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        _blocking(self._client)
        self._session.append([_our_message(message) for message in messages])

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        await self._session.aappend([_our_message(message) for message in messages])

    def clear(self) -> None:
        """Delete all messages, but not the memories derived from them."""
        _blocking(self._client)
        self._session.delete()

    async def aclear(self) -> None:
        await self._session.adelete()


class AgentMemoryRetriever(BaseRetriever):
    """A `BaseRetriever` for long-term memories. Each document contains a memory's text.

    The memory's other fields are metadata. The search covers `user_id` and `namespace`. `k` is the
    maximum number of memories, and can be overridden for a call: `invoke("…", k=3)`. With a
    `MemoryClient`, use `ainvoke`.
    """

    client: Any
    """A `MemoryClient` or a `SyncMemoryClient`."""
    user_id: str | None = None
    namespace: str | None = None
    k: int = 5

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None) -> list[Document]:
        _blocking(self.client)
        return _documents(self._recall.search(query, k))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return _documents(await self._recall.asearch(query, k))

    @property
    def _recall(self) -> Recall:
        return Recall(self.client, self.user_id, self.namespace, limit=self.k)


def _blocking(client: AnyClient) -> SyncMemoryClient:
    if not isinstance(client, SyncMemoryClient):
        raise TypeError("a MemoryClient is awaited (ainvoke, aget_messages …): use those calls, or a SyncMemoryClient")
    return client


def _our_message(message: BaseMessage) -> MemoryMessage:
    role = _ROLES.get(message.type) or str(getattr(message, "role", "user"))
    # Models read the text. The message itself is stored in its own field.
    text = message.content if isinstance(message.content, str) else message.text
    return our_message(role, str(text).strip(), (MESSAGE, message_to_dict(message)))


def _langchain_message(message: MemoryMessage) -> BaseMessage:
    raw = message.own_fields.get(MESSAGE)
    if not isinstance(raw, dict):
        raw = {"type": _TYPES.get(message.role, "human"), "data": {"content": message.content, "id": message.id}}
    return messages_from_dict([raw])[0]


def _documents(memories: Sequence[MemoryRecordResult]) -> list[Document]:
    return [
        Document(page_content=memory.text, id=memory.id, metadata=memory.model_dump(mode="json", exclude_none=True, exclude={"text"}))
        for memory in memories
    ]


def get_memory_tools(
    memory_client: AnyClient,
    session_id: str,
    user_id: str | None = None,
    namespace: str | None = None,
    tools: Sequence[str] | Literal["all"] = "all",
) -> list[StructuredTool]:
    """Return all of a conversation's tools, or only `tools`, for one user and namespace.

    With a `MemoryClient`, use `ainvoke`. With a `SyncMemoryClient`, use `invoke`. The tools report
    errors to the model. Raises ValueError for an unknown name.
    """
    calls = Tools(memory_client, session_id, user_id, namespace)
    return [_tool(calls, schema) for schema in tool_schemas(tools)]


get_memory_tools_langchain = get_memory_tools


def _tool(calls: Tools, schema: dict[str, Any]) -> StructuredTool:
    name = schema["name"]

    async def awaited(**arguments: Any) -> str:
        return _text(await calls.acall(name, arguments))

    def called(**arguments: Any) -> str:
        return _text(calls.call(name, arguments))

    is_blocking = isinstance(calls.client, SyncMemoryClient)
    return StructuredTool(
        name=name,
        description=schema["description"],
        args_schema=schema["parameters"],
        func=called if is_blocking else None,
        coroutine=None if is_blocking else awaited,
        handle_tool_error=True,
    )


def _text(result: ToolCallResolutionResult) -> str:
    if not result["success"]:
        raise ToolException(result["formatted_response"])
    return result["formatted_response"]
