"""Test memory blocks in both Python clients, including the tools for models."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from ulid import ULID

from agent_memory_client import MemoryClient, MemoryClientConfig, SyncMemoryClient
from agent_memory_client.errors import MemoryNotFoundError, MemoryPreconditionFailedError, MemoryServerError


@pytest.fixture
def config(server: httpx.AsyncClient) -> MemoryClientConfig:
    return MemoryClientConfig(base_url=str(server.base_url), default_namespace=f"n{ULID()}")


async def test_client_creates_edits_undoes_attaches_and_deletes_blocks(config: MemoryClientConfig) -> None:
    owner: dict[str, Any] = {"user_id": "ada", "agent_id": "coach"}
    async with MemoryClient(config) as client:
        made = await client.blocks.put("human", "Name: Ada", description="Who she is.", limit=60, **owner)
        assert made.block.namespace == config.default_namespace
        edited = await client.blocks.edit("human", "append", "Tea", if_match=made.block.version, **owner)
        assert edited.change is not None
        assert edited.change.said == "appended 4 characters"
        with pytest.raises(MemoryPreconditionFailedError):
            await client.blocks.edit("human", "append", "Tea", if_match=made.block.version, **owner)
        with pytest.raises(MemoryServerError, match="is full"):
            await client.blocks.edit("human", "append", "x" * 60, **owner)
        assert (await client.blocks.edit("human", "insert", "First", line=1, **owner)).block.value == "First\nName: Ada\nTea"
        assert (await client.blocks.undo("human", **owner)).block.value == "Name: Ada\nTea"
        assert len((await client.blocks.history("human", **owner)).changes) == 4
        assert (await client.blocks.attach("human", {"agent_id": "cook"}, **owner)).attached_to[0].agent_id == "cook"
        assert (await client.blocks.detach("human", {"agent_id": "cook"}, **owner)).attached_to == []
        assert [block.label for block in (await client.blocks.list(**owner)).blocks] == ["human"]
        assert [block.label for block in (await client.blocks.list(user_id="ada", shown=True)).blocks] == []
        assert (await client.blocks.delete("human", **owner)).status == "ok"
        with pytest.raises(MemoryNotFoundError):
            await client.blocks.get("human", **owner)


def with_sync(config: MemoryClientConfig) -> None:
    with SyncMemoryClient(config) as client:
        client.blocks.put("persona", "I am a coach.", agent_id="coach")
        client.blocks.put("human", "Name: Ada", agent_id="coach", user_id="ada")
        assert {"core_memory_append", "core_memory_replace"} <= set(client.tools.schemas("anthropic").names())

        def call(name: str, **arguments: str) -> dict[str, Any]:
            asked = {"name": name, "arguments": arguments}
            return dict(client.tools.resolve_tool_call(asked, "s", user_id="ada", agent_id="coach"))

        done = call("core_memory_append", label="human", content="Tea")
        assert done["result"]["value"] == "Name: Ada\nTea"
        assert done["formatted_response"].startswith("human: appended 4 characters; it has 13 of 2000 characters now")
        done = call("core_memory_replace", label="persona", old_content="a coach", new_content="her coach")
        assert client.blocks.get("persona", agent_id="coach").value == "I am her coach."
        assert "most similar" in call("core_memory_replace", label="human", old_content="Name Ada", new_content="x")["error"].lower()
        assert "there are: human, persona" in call("core_memory_append", label="plans", content="x")["error"]
        assert "content" in call("core_memory_append", label="human")["error"]
        other = client.tools.resolve_tool_call(
            {"name": "core_memory_append", "arguments": {"label": "human", "content": "x"}}, "s", user_id="ben"
        )
        assert not other["success"]


async def test_block_tools_edit_prompt_blocks_in_the_blocking_client(config: MemoryClientConfig) -> None:
    await asyncio.to_thread(with_sync, config)
