"""Test that tools reject misspelled scope arguments and report other unknown ones."""

from __future__ import annotations

import pytest
from ulid import ULID

from tests.interfaces.mcp.conftest import Server
from tests.support.mcp import over_http


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("search_long_term_memory", {"text": "x", "userid": "ada"}, "userid: is not a known field and would be ignored: use user_id"),
        ("memory_prompt", {"query": "x", "user": {"eq": "ada"}}, "user: is not a known field and would be ignored: use user_id"),
        ("create_long_term_memories", {"memories": [{"text": "x", "userId": "ada"}]}, "memories.0.userId: is not a known field"),
        (
            "set_working_memory",
            {"session_id": "s", "name_space": "n"},
            "name_space: is not a known field and would be ignored: use namespace",
        ),
        (
            "create_long_term_memories",
            {"memories": [{"text": "x"}], "user_id": "ada"},
            "user_id: is not a known field and would be ignored: use",
        ),
        ("search_long_term_memory", {"text": "x", "agents": "a"}, "agents: is not a known field and would be ignored: use agent_id"),
        ("delete_long_term_memories", {"memory_ids": ["a"], "user_id": "ada"}, "user_id: is not a known field"),
    ],
)
async def test_misspelled_scope_argument_is_refused_with_the_right_name(
    server: Server, tool: str, arguments: dict[str, object], said: str
) -> None:
    async with over_http(f"{server.url}/mcp") as session:
        assert f"422: {said}" in await session.error(tool, **arguments)


async def test_other_unknown_arguments_are_named_in_the_result_metadata(server: Server) -> None:
    async with over_http(f"{server.url}/mcp") as session:
        found = await session.result("search_long_term_memory", text="x", namespace=str(ULID()), verbose=True)
        assert found.structured_content == {"memories": [], "total": 0, "next_offset": None, "notices": None, "explanation": None}
        assert (found.meta or {})["agent-memory/ignored-fields"] == "verbose"
        found = await session.result("search_long_term_memory", text="x", namespace=str(ULID()))
        assert "agent-memory/ignored-fields" not in (found.meta or {})


async def test_agent_id_works_as_in_rest(server: Server) -> None:
    """`agent_id` filters searches, selects a prompt's blocks, and sets a session's agent."""
    space = str(ULID())
    owned = {"user_id": "ida", "namespace": space, "memory_type": "semantic"}
    memories = [{"text": "Ida plays the harp", **owned}, {"text": "The harp of Ida has 47 strings", "agent_id": "coach", **owned}]
    async with over_http(f"{server.url}/mcp") as session:
        await session.result("create_long_term_memories", memories=memories)
        hers = {"user_id": "ida", "namespace": space}
        found = (await session.result("search_long_term_memory", text="harp", agent_id="coach", **hers)).structured_content
        assert [memory["agent_id"] for memory in found["memories"]] == ["coach"]
        found = (await session.result("memory_prompt", query="harp", agent_id="coach", **hers)).structured_content
        assert len(found["long_term_memories"]) == 2
        stored = (await session.result("set_working_memory", session_id="s", agent_id="coach", **hers)).structured_content
        assert stored["agent_id"] == "coach"
