"""Run LangChain's own conformance tests (`langchain-tests`) for retrievers and tools."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import RetrieversIntegrationTests, ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from agent_memory_client import ClientMemoryRecord
from agent_memory_client.integrations.langchain import AgentMemoryRetriever, get_memory_tools
from agent_memory_client.sync import SyncMemoryClient

QUESTION = "What does Ada keep?"


class Owned:
    """Gives each test its own user with one memory."""

    client: SyncMemoryClient
    user: str

    @pytest.fixture(autouse=True)
    def _known(self, blocking: SyncMemoryClient) -> None:
        self.client, self.user = blocking, f"u-{uuid4()}"
        texts = [f"Ada keeps {number} {kind}." for number, kind in enumerate(("bees", "goats", "hens", "cats", "dogs"), 2)]
        blocking.memories.create([ClientMemoryRecord(text=text, user_id=self.user) for text in texts])


class TestRetriever(Owned, RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[AgentMemoryRetriever]:
        return AgentMemoryRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"client": self.client, "user_id": self.user}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


class _SearchTool(Owned):
    @property
    def tool_constructor(self) -> BaseTool:
        (tool,) = get_memory_tools(self.client, "conformance", user_id=self.user, tools=["search_memory"])
        return tool

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"query": QUESTION}


class TestTool(_SearchTool, ToolsUnitTests):
    pass


class TestToolCalls(_SearchTool, ToolsIntegrationTests):
    pass
