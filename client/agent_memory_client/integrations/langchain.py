"""A chat message history, a retriever and the tools for LangChain. Needs the extra: `pip install 'agent-memory-api-client[langchain]'`."""

# langchain-core is an optional extra.
# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

from agent_memory_client._tools import definitions
from agent_memory_client._tools.calls import ToolCallResolutionResult
from agent_memory_client.errors import MemoryNotFoundError
from agent_memory_client.integrations._shared import our_message, our_session_id
from agent_memory_client.memory_client import MemoryClient
from agent_memory_client.models import MemoryMessage, MemoryRecordResults
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
"""The message field with LangChain's own message."""
_NEVER_SUMMARIZED = 2**53 - 1
_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "function"}
_TYPES = {"user": "human", "assistant": "ai", "system": "system"}


class AgentMemoryChatMessageHistory(BaseChatMessageHistory):
    """A `BaseChatMessageHistory` on a session of the server; messages return as they were added, tool calls included.

    With a `MemoryClient` use the awaited calls (`aget_messages`, `aadd_messages`, `aclear`); with a `SyncMemoryClient`,
    any. Calls raise the errors of `agent_memory_client.errors`.
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
        self._session_id = our_session_id(session_id)
        self._client = client
        self._user_id = user_id
        self._namespace = namespace

    @property
    def messages(self) -> list[BaseMessage]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """All messages, oldest first."""
        try:
            session = _blocking(self._client).sessions.get(
                self._session_id, self._user_id, self._namespace, context_window_max=_NEVER_SUMMARIZED
            )
        except MemoryNotFoundError:
            return []
        return [_langchain_message(message) for message in session.messages]

    async def aget_messages(self) -> list[BaseMessage]:
        if isinstance(self._client, SyncMemoryClient):
            return await asyncio.to_thread(lambda: self.messages)
        try:
            session = await self._client.sessions.get(
                self._session_id, self._user_id, self._namespace, context_window_max=_NEVER_SUMMARIZED
            )
        except MemoryNotFoundError:
            return []
        return [_langchain_message(message) for message in session.messages]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        if messages:
            said = [_our_message(message) for message in messages]
            _blocking(self._client).sessions.append(
                self._session_id, said, self._namespace, user_id=self._user_id, context_window_max=_NEVER_SUMMARIZED
            )

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        if isinstance(self._client, SyncMemoryClient):
            await asyncio.to_thread(self.add_messages, messages)
        elif messages:
            said = [_our_message(message) for message in messages]
            await self._client.sessions.append(
                self._session_id, said, self._namespace, user_id=self._user_id, context_window_max=_NEVER_SUMMARIZED
            )

    def clear(self) -> None:
        """Delete all messages; memories made of them stay."""
        _blocking(self._client).sessions.delete(self._session_id, self._namespace, self._user_id)

    async def aclear(self) -> None:
        if isinstance(self._client, SyncMemoryClient):
            await asyncio.to_thread(self.clear)
        else:
            await self._client.sessions.delete(self._session_id, self._namespace, self._user_id)


class AgentMemoryRetriever(BaseRetriever):
    """A `BaseRetriever` over long-term memories: documents of their texts, with their fields as metadata.

    `user_id` and `namespace` limit the search; `k` is the number of memories, also per call (`invoke("…", k=3)`). With
    a `MemoryClient`, use `ainvoke`.
    """

    client: Any
    """A `MemoryClient` or a `SyncMemoryClient`."""
    user_id: str | None = None
    namespace: str | None = None
    k: int = 5

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None) -> list[Document]:
        return _documents(_blocking(self.client).memories.search(query, **self._filters(k)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        if isinstance(self.client, SyncMemoryClient):
            return _documents(await asyncio.to_thread(self.client.memories.search, query, **self._filters(k)))
        return _documents(await self.client.memories.search(query, **self._filters(k)))

    def _filters(self, k: int | None) -> dict[str, Any]:
        filters: dict[str, Any] = {"limit": self.k if k is None else k}
        if self.user_id is not None:
            filters["user_id"] = {"eq": self.user_id}
        if self.namespace is not None:
            filters["namespace"] = {"eq": self.namespace}
        return filters


def _blocking(client: MemoryClient | SyncMemoryClient) -> SyncMemoryClient:
    if not isinstance(client, SyncMemoryClient):
        raise TypeError("a MemoryClient is awaited (ainvoke, aget_messages …): use those calls, or a SyncMemoryClient")
    return client


def _our_message(message: BaseMessage) -> MemoryMessage:
    role = _ROLES.get(message.type) or str(getattr(message, "role", "user"))
    # The text is for models; the message itself is kept beside it.
    text = message.content if isinstance(message.content, str) else message.text
    return our_message(role, str(text).strip(), (MESSAGE, message_to_dict(message)))


def _langchain_message(message: MemoryMessage) -> BaseMessage:
    raw = message.own_fields.get(MESSAGE)
    if not isinstance(raw, dict):
        raw = {"type": _TYPES.get(message.role, "human"), "data": {"content": message.content, "id": message.id}}
    return messages_from_dict([raw])[0]


def _documents(results: MemoryRecordResults) -> list[Document]:
    return [
        Document(
            page_content=memory.text,
            id=memory.id,
            metadata=memory.model_dump(mode="json", exclude_none=True, exclude={"text"}),
        )
        for memory in results.memories
    ]


def get_memory_tools(
    memory_client: MemoryClient | SyncMemoryClient,
    session_id: str,
    user_id: str | None = None,
    namespace: str | None = None,
    tools: Sequence[str] | Literal["all"] = "all",
) -> list[StructuredTool]:
    """Return the tools of a conversation, all or those named, bound to `user_id` and `namespace`.

    With a `MemoryClient` use `ainvoke`; with a `SyncMemoryClient`, `invoke` (LangChain awaits it in a thread). Errors
    are reported to the model. Raises ValueError for an unknown name.
    """
    names = list(definitions.BY_NAME) if tools == "all" else list(tools)
    unknown = sorted(set(names) - set(definitions.BY_NAME))
    if unknown:
        raise ValueError(f"there is no tool {', '.join(unknown)}, there are {', '.join(definitions.BY_NAME)}")
    return [_tool(memory_client, name, our_session_id(session_id), namespace, user_id) for name in names]


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
