"""Test the nine tools end to end, with both clients and a real server."""

from __future__ import annotations

import json
from typing import Any

from agent_memory_client import MemoryAPIClient, ToolCallResolutionResult
from agent_memory_client.models import ClientMemoryRecord, MemoryStrategyConfig
from tests.support.waiting import wait_until


async def called(memory: MemoryAPIClient, tool: str, user_id: str | None = "ada", **arguments: Any) -> ToolCallResolutionResult:
    """Resolve a tool call in OpenAI's format, and return the result."""
    call = {"id": "call-1", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
    result = await memory.resolve_tool_call(call, "talk", user_id=user_id)
    assert set(result) == {"success", "function_name", "result", "error", "formatted_response"}
    assert result["function_name"] == tool
    return result


async def succeeded(memory: MemoryAPIClient, tool: str, user_id: str | None = "ada", **arguments: Any) -> dict[str, Any]:
    """Resolve a tool call, assert that it succeeds, and return the result."""
    result = await called(memory, tool, user_id, **arguments)
    assert result["success"], result["error"]
    assert result["error"] is None
    assert result["result"]
    assert result["formatted_response"]
    return result["result"]


async def test_model_stores_finds_edits_and_deletes_memories(memory: MemoryAPIClient) -> None:
    stored = await succeeded(
        memory,
        "eagerly_create_long_term_memory",
        memories=[
            {"text": "Ada plays the cello.", "memory_type": "semantic", "topics": ["music"], "entities": ["Ada"], "event_date": None},
            {"text": "Ada sold her car on 1 March 2026.", "memory_type": "episodic", "event_date": "2026-03-01T10:00:00Z"},
        ],
    )
    assert (stored["status"], stored["message"], len(stored["ids"])) == ("ok", "Created 2 memories successfully", 2)

    async def findable() -> dict[str, Any] | None:
        page = await succeeded(memory, "search_memory", query="Which instrument does she play?", max_results=1, min_relevance=0.1)
        return page if page["memories"] else None

    page = await wait_until(findable, "the memories to be embedded")
    assert set(page) == {"memories", "total_found", "offset", "next_offset", "has_more", "query", "summary"}
    assert page["summary"] == "Found 1 relevant memories for: Which instrument does she play?"
    hit = page["memories"][0]
    assert set(hit) == {"id", "text", "memory_type", "topics", "entities", "created_at", "relevance_score"}
    assert (hit["id"], hit["text"], hit["topics"]) == (stored["ids"][0], "Ada plays the cello.", ["music"])
    assert 0 < hit["relevance_score"] <= 1
    told = (await called(memory, "search_memory", query="cello", search_mode="keyword"))["formatted_response"]
    assert hit["id"] in told
    assert "Ada plays the cello." in told

    record = (await succeeded(memory, "get_long_term_memory", memory_id=stored["ids"][1]))["memory"]
    assert (record.user_id, record.namespace, record.event_date.year) == ("ada", memory.config.default_namespace, 2026)
    edited = await succeeded(memory, "edit_long_term_memory", memory_id=hit["id"], text="Ada plays the viola.", topics=["music", "strings"])
    assert (edited["memory"].text, edited["memory"].topics) == ("Ada plays the viola.", ["music", "strings"])
    assert "viola" in (await called(memory, "get_long_term_memory", memory_id=hit["id"]))["formatted_response"]
    assert (await succeeded(memory, "delete_long_term_memories", memory_ids=stored["ids"]))["status"] == "ok, deleted 2 memories"
    gone = await called(memory, "get_long_term_memory", memory_id=hit["id"])
    assert not gone["success"]
    assert "not found" in str(gone["error"])


async def test_search_tool_returns_pages(memory: MemoryAPIClient) -> None:
    records = [ClientMemoryRecord(text=f"Locker {number} is blue.", user_id="ada") for number in range(3)]
    await memory.create_long_term_memory(records, wait=20)
    first = await succeeded(memory, "search_memory", query="blue locker", max_results=2)
    assert (len(first["memories"]), first["total_found"], first["next_offset"], first["has_more"]) == (2, 3, 2, True)
    last = await succeeded(memory, "search_memory", query="blue locker", max_results=2, offset=first["next_offset"])
    assert (len(last["memories"]), last["next_offset"], last["has_more"]) == (1, None, False)
    assert {hit["id"] for hit in first["memories"] + last["memories"]} == {record.id for record in records}


async def test_model_cannot_see_memories_of_other_users(memory: MemoryAPIClient) -> None:
    secret = ClientMemoryRecord(text="Eve's safe opens with 4711.", user_id="eve")
    await memory.create_long_term_memory([secret], wait=20)
    for mode in ("semantic", "keyword", "hybrid"):
        assert (await succeeded(memory, "search_memory", query="safe code 4711", search_mode=mode))["memories"] == []
    asked_for = await memory.resolve_function_call("search_memory", {"query": "safe", "user_id": "eve"}, "talk", user_id="ada")
    assert "user_id" in str(asked_for["error"])
    for tool, given in (
        ("get_long_term_memory", {"memory_id": secret.id}),
        ("edit_long_term_memory", {"memory_id": secret.id, "text": "taken over"}),
        ("delete_long_term_memories", {"memory_ids": [secret.id]}),
    ):
        refused = await called(memory, tool, **given)  # pyright: ignore
        assert not refused["success"]
        assert "4711" not in json.dumps(refused)
    assert (await memory.get_long_term_memory(secret.id)).text == secret.text
    assert (await succeeded(memory, "search_memory", "eve", query="safe code"))["memories"][0]["id"] == secret.id


async def test_model_reads_and_writes_session_data_and_memories(memory: MemoryAPIClient) -> None:
    new = await succeeded(memory, "get_or_create_working_memory")
    assert (new["created"], new["message_count"], new["memory_count"], new["data"]) == (True, 0, 0, {})
    await memory.append_messages("talk", [{"role": "user", "content": "Book me a table."}], user_id="ada")
    noted = await succeeded(memory, "lazily_create_long_term_memory", text="Ada is a vegetarian.", memory_type="semantic", topics=["food"])
    assert noted["summary"] == "Successfully stored semantic memory: Ada is a vegetarian."
    assert (noted["memory_type"], noted["text_preview"], noted["topics"], noted["entities"]) == (
        "semantic",
        "Ada is a vegetarian.",
        ["food"],
        [],
    )
    await succeeded(memory, "update_working_memory_data", data={"table": {"for": 2}})
    changed = await succeeded(memory, "update_working_memory_data", data={"table": {"at": "19:00"}}, merge_strategy="deep_merge")
    assert (changed["updated_keys"], changed["merge_strategy"]) == (["table"], "deep_merge")
    state = await succeeded(memory, "get_or_create_working_memory")
    assert (state["created"], state["message_count"], state["memory_count"]) == (False, 1, 1)
    assert state["data"] == {"table": {"for": 2, "at": "19:00"}}
    assert state["data_keys"] == ["table"]
    assert [message["content"] for message in state["messages"]] == ["Book me a table."]
    assert state["memories"][0]["text"] == "Ada is a vegetarian."
    assert state["summary"] == "Retrieved existing session with 1 messages, 1 stored memories, and 1 data entries"
    await memory.flush_working_memory("talk", user_id="ada", wait=True)
    page = await memory.search_memory_tool("vegetarian", search_mode="keyword", user_id="ada")
    assert "Ada is a vegetarian." in {hit["text"] for hit in page["memories"]}
    mine = await memory.get_working_memory("talk", user_id="ada")
    assert mine.user_id == "ada"


async def test_tool_methods_can_be_called_directly(memory: MemoryAPIClient) -> None:
    created = await memory.get_or_create_working_memory_tool("direct", long_term_memory_strategy=MemoryStrategyConfig(strategy="summary"))
    assert created["created"] is True
    assert (await memory.add_memory_tool("direct", "Ada rows.", "semantic", entities=["Ada"]))["success"] is True
    assert (await memory.update_memory_data_tool("direct", {"n": 1}, "replace"))["success"] is True
    state = await memory.get_working_memory_tool("direct")
    assert (state["memory_count"], state["data"], "created" in state) == (1, {"n": 1}, False)
    for failed in (
        await memory.get_working_memory_tool("a/b"),
        await memory.get_or_create_working_memory_tool("a/b"),
        await memory.add_memory_tool("direct", "x", "odd"),
        await memory.update_memory_data_tool("a/b", {"n": 1}),
    ):
        assert failed["error"]
        assert failed["summary"].startswith("Error ")


async def test_one_turn_resolves_tool_calls_of_several_providers(memory: MemoryAPIClient) -> None:
    results = await memory.resolve_tool_calls(
        [
            {"type": "tool_use", "id": "t1", "name": "update_working_memory_data", "input": {"data": {"a": 1}}},
            {"name": "get_working_memory", "arguments": ""},
            {"name": "get_current_datetime", "args": {}, "id": "l1"},
            {"name": "search_memory", "arguments": '{"query": '},
        ],
        "talk",
        user_id="ada",
    )
    assert [result["success"] for result in results] == [True, True, True, False]
    assert results[1]["result"]["data"] == {"a": 1}  # pyright: ignore[reportOptionalSubscript]
    assert [result["function_name"] for result in await memory.resolve_function_calls([], "talk")] == []
