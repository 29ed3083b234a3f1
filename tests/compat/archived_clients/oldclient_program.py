"""Call every HTTP method of the archived Python client and check the responses.

The client's environment runs `python -I oldclient_program.py BASE_URL [PART...]`. Each PART is a
file with the `scenarios` of one feature. The program prints a JSON report.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import runpy
import sys
import time
import traceback
import warnings
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from oldclient_watch import Watch, talking
from ulid import ULID

import agent_memory_client as package
from agent_memory_client import MemoryClientConfig, MemoryNotFoundError, MemoryServerError
from agent_memory_client.filters import CreatedAt, Entities, MemoryType, Namespace, SessionId, Topics, UserId
from agent_memory_client.models import (
    ClientMemoryRecord,
    ForgetPolicy,
    MemoryMessage,
    MemoryStrategyConfig,
    MemoryTypeEnum,
    RecencyConfig,
    WorkingMemory,
)

PATIENCE_SECONDS = 30.0
DAY = timedelta(days=1)
BORN = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
FACTS = {
    "tea": "Ada drinks green tea in the morning.",
    "bike": "Ada rides a red bicycle to work.",
    "cello": "Ada played the cello at a concert in Paris.",
}

Client = Any
warnings.simplefilter("ignore", DeprecationWarning)


async def until(condition: Callable[[], Awaitable[Any]], what: str) -> Any:
    """Poll a condition until it returns a true value, and return that value."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := await condition()):
        assert time.monotonic() < deadline, f"waited {PATIENCE_SECONDS:.0f} s in vain: {what}"
        await asyncio.sleep(0.05)
    return found


def fact(name: str, **more: Any) -> ClientMemoryRecord:
    return ClientMemoryRecord(**{"text": FACTS[name], "memory_type": MemoryTypeEnum.SEMANTIC, **more})


async def found(client: Client, count: int, text: str = "Ada", **filters: Any) -> list[Any]:
    """Wait until a search finds `count` memories, and return them."""

    async def enough() -> list[Any] | None:
        results = await client.search_long_term_memory(text, **filters)
        return results.memories if len(results.memories) >= count else None

    memories = await until(enough, f"{count} memories for {text!r} {filters}")
    assert len(memories) == count
    return memories


async def three(client: Client, **more: Any) -> dict[str, ClientMemoryRecord]:
    """Store the three facts and wait until they have vectors."""
    records = {
        "tea": fact("tea", topics=["food", "habits"], entities=["Ada"], user_id="ada", session_id="s1", **more),
        "bike": fact("bike", topics=["travel", "habits"], entities=["Ada", "bicycle"], user_id="ada", session_id="s2", **more),
        "cello": fact("cello", topics=["music"], user_id="bob", memory_type=MemoryTypeEnum.EPISODIC, event_date=BORN, **more),
    }
    assert (await client.create_long_term_memory(list(records.values()))).status == "ok"
    await found(client, 3, distance_threshold=1.9)
    return records


async def health(client: Client) -> None:
    answer = await client.health_check()
    assert abs(answer.now / 1000 - time.time()) < 60


async def sessions(client: Client) -> None:
    said = [MemoryMessage(role="user", content="Good morning"), MemoryMessage(role="assistant", content="Hello Ada")]
    session = WorkingMemory(
        session_id="s:1 ä", messages=said, data={"mood": {"is": "good"}, "n": 1}, context="They met before.", user_id="ada", tokens=7
    )
    stored = await client.put_working_memory("s:1 ä", session, model_name="gpt-4o")
    assert (stored.session_id, stored.namespace, stored.user_id, stored.tokens) == ("s:1 ä", client.config.default_namespace, "ada", 7)
    assert [message.model_dump(exclude={"created_at"}) for message in stored.messages] == [
        message.model_dump(exclude={"created_at"}) for message in said
    ]
    assert 0 < stored.context_percentage_total_used < stored.context_percentage_until_summarization < 100
    read = await client.get_working_memory("s:1 ä", user_id="ada")
    assert (read.data, read.context, read.ttl_seconds) == (session.data, session.context, None)
    assert [message.id for message in read.messages] == [message.id for message in said]
    assert read.context_percentage_total_used is None
    assert not read.unsaved
    unscoped = await client.get_working_memory("s:1 ä")
    assert unscoped.user_id == "ada"
    assert (await client.delete_working_memory("s:1 ä", user_id="ada")).status == "ok"
    assert (await client.delete_working_memory("s:1 ä", user_id="ada")).status == "ok"
    await refused(client.get_working_memory("s:1 ä", user_id="ada"), MemoryNotFoundError)


async def listing(client: Client) -> None:
    for name in ("a", "b", "c"):
        await client.put_working_memory(name, WorkingMemory(session_id=name, namespace=client.config.default_namespace, user_id="ada"))
    page = await client.list_sessions(limit=2)
    rest = await client.list_sessions(limit=2, offset=2)
    assert (page.total, len(page.sessions), len(rest.sessions)) == (3, 2, 1)
    assert set(page.sessions + rest.sessions) == {"a", "b", "c"}
    assert (await client.list_sessions(user_id="ada")).total == 3
    assert (await client.list_sessions(user_id="bob")).sessions == []


async def get_or_create(client: Client) -> None:
    strategy = MemoryStrategyConfig(strategy="summary", config={"max_summary_length": 100})
    created, session = await client.get_or_create_working_memory("new", user_id="ada", long_term_memory_strategy=strategy)
    assert (created, session.session_id, session.user_id, session.messages) == (True, "new", "ada", [])
    assert session.namespace == client.config.default_namespace
    again, read = await client.get_or_create_working_memory("new", user_id="ada")
    assert (again, read.long_term_memory_strategy) == (False, strategy)


async def data(client: Client) -> None:
    await client.append_messages_to_working_memory("d", [{"role": "user", "content": "Keep me"}])
    first = await client.set_working_memory_data("d", {"a": 1, "deep": {"x": 1}})
    assert (first.data, [message.content for message in first.messages]) == ({"a": 1, "deep": {"x": 1}}, ["Keep me"])
    merged = await client.update_working_memory_data("d", {"deep": {"y": 2}, "b": False}, merge_strategy="deep_merge")
    assert merged.data == {"a": 1, "deep": {"x": 1, "y": 2}, "b": False}
    assert (await client.update_working_memory_data("d", {"deep": {"z": 3}})).data == {"a": 1, "deep": {"z": 3}, "b": False}
    replaced = await client.update_working_memory_data("d", {"c": [1, "two"]}, merge_strategy="replace")
    assert (replaced.data, len(replaced.messages)) == ({"c": [1, "two"]}, 1)
    emptied = await client.set_working_memory_data("d", {}, preserve_existing=False)
    assert (emptied.data or {}, emptied.messages) == ({}, [])


async def appending(client: Client) -> None:
    for number in range(3):
        said: list[Any] = [{"role": "user", "content": f"question {number}"}, MemoryMessage(role="assistant", content=f"answer {number}")]
        answer = await client.append_messages_to_working_memory("log", said, model_name="gpt-4o", context_window_max=4000)
    wanted = [f"{word} {number}" for number in range(3) for word in ("question", "answer")]
    assert [message.content for message in answer.messages] == wanted
    _, read = await client.get_or_create_working_memory("log")
    assert [message.content for message in read.messages] == wanted
    assert len({message.id for message in read.messages}) == 6


async def chat_messages(client: Client) -> None:
    """Check that a put preserves tool calls and content parts from another program."""
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    sent = [
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture], "id": "1"},
        {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None, "id": "2"},
        {"role": "tool", "content": "21 degrees", "tool_call_id": "c1", "id": "3"},
        {"role": "user", "content": [picture], "id": "4"},
        {"role": "assistant", "content": "Porto", "custom": {"a": [1]}, "id": "5"},
    ]
    path, space = "/v1/working-memory/tools", {"namespace": client.config.default_namespace}
    (await client._client.put(path, json={"messages": sent, **space})).raise_for_status()
    texts = ["What is this?", "", "21 degrees", "", "Porto"]
    _, read = await client.get_or_create_working_memory("tools")
    assert [message.content for message in read.messages] == texts
    prompt = await client.memory_prompt("And now?", session_id="tools", long_term_search={"namespace": {"eq": space["namespace"]}})
    assert [message["content"]["text"] for message in prompt["messages"][:5]] == texts
    assert [message["role"] for message in prompt["messages"][:5]] == ["user", "assistant", "assistant", "user", "assistant"]
    assert [message.get("tool_call_id") for message in prompt["messages"][:5]] == [None, None, "c1", None, None]

    more = await client.append_messages_to_working_memory("tools", [{"role": "user", "content": "Thanks"}])
    assert [message.content for message in more.messages] == [*texts, "Thanks"]
    stored = (await client._client.get(path, params=space)).json()["messages"]
    assert [one.get("tool_calls") for one in stored] == [None, [call], None, None, None, None]
    assert [one.get("content_parts") for one in stored] == [sent[0]["content"], None, None, [picture], None, None]
    assert [(one.get("tool_call_id"), one.get("custom")) for one in stored[2:5]] == [("c1", None), (None, None), (None, {"a": [1]})]


async def session_memories(client: Client) -> None:
    tea, bike = fact("tea"), fact("bike")
    added = await client.add_memories_to_working_memory("m", [tea])
    assert [(memory.id, memory.text) for memory in added.memories] == [(tea.id, tea.text)]
    both = await client.add_memories_to_working_memory("m", [bike])
    assert {memory.id for memory in both.memories} == {tea.id, bike.id}
    assert (await client.promote_working_memories_to_long_term("m", [tea.id])).status == "ok"
    memory = await until(lambda: absent_as_none(client.get_long_term_memory(tea.id)), "the promoted memory")
    assert (memory.text, memory.memory_type) == (tea.text, "semantic")
    only = await client.add_memories_to_working_memory("m", [bike], replace=True)
    assert [memory.id for memory in only.memories] == [bike.id]


async def records(client: Client) -> None:
    tea = fact("tea", topics=["food"], entities=["Ada"], user_id="ada", event_date=BORN, created_at=BORN)
    assert (await client.create_long_term_memory([tea])).status == "ok"
    read = await client.get_long_term_memory(tea.id)
    assert (read.id, read.text, read.topics, read.entities) == (tea.id, tea.text, ["food"], ["Ada"])
    assert (read.user_id, read.namespace, read.memory_type) == ("ada", client.config.default_namespace, "semantic")
    assert (read.event_date, read.created_at) == (BORN, BORN)
    edited = await client.edit_long_term_memory(tea.id, {"text": "Ada drinks coffee now.", "topics": [], "memory_type": "episodic"})
    assert (edited.text, edited.topics, edited.memory_type, edited.entities) == ("Ada drinks coffee now.", [], "episodic", ["Ada"])
    assert edited.updated_at > read.updated_at
    bike = fact("bike")
    await client.create_long_term_memory([bike], deduplicate=False)
    assert (await client.delete_long_term_memories([tea.id, bike.id, "none"])).status == "ok, deleted 2 memories"
    await refused(client.get_long_term_memory(tea.id), MemoryNotFoundError)
    await refused(client.edit_long_term_memory(bike.id, {"text": "x"}), MemoryNotFoundError)


async def searching(client: Client) -> None:
    stored = await three(client)
    results = await client.search_long_term_memory("What does Ada drink?", limit=1)
    assert (results.total, results.next_offset, len(results.memories)) == (3, 1, 1)
    best = results.memories[0]
    assert (best.id, best.text) == (stored["tea"].id, FACTS["tea"])
    assert 0 < best.dist < 1
    last = await client.search_long_term_memory("What does Ada drink?", limit=1, offset=2, optimize_query=True)
    assert (last.total, last.next_offset, len(last.memories)) == (3, None, 1)
    near = await client.search_long_term_memory("What does Ada drink?", distance_threshold=best.dist + 0.0001)
    assert [memory.id for memory in near.memories] == [best.id]
    recency = RecencyConfig(
        recency_boost=True, semantic_weight=0.9, recency_weight=0.1, half_life_created_days=3.0, server_side_recency=True
    )
    assert (await client.search_long_term_memory("What does Ada drink?", recency=recency)).memories[0].id == best.id


async def filters(client: Client) -> None:
    names = {record.id: name for name, record in (await three(client)).items()}
    now = datetime.now(UTC)
    cases: list[tuple[dict[str, Any], set[str]]] = [
        ({"user_id": UserId(eq="ada")}, {"tea", "bike"}),
        ({"user_id": UserId(in_=["bob", "eve"])}, {"cello"}),
        ({"user_id": UserId(not_eq="ada")}, {"cello"}),
        ({"user_id": UserId(not_in=["bob"])}, {"tea", "bike"}),
        ({"session_id": SessionId(in_=["s1", "s2"])}, {"tea", "bike"}),
        ({"session_id": {"eq": "s2"}}, {"bike"}),
        ({"topics": Topics(any=["food", "music"])}, {"tea", "cello"}),
        ({"topics": Topics(all=["travel", "habits"])}, {"bike"}),
        ({"topics": Topics(none=["music"])}, {"tea", "bike"}),
        ({"entities": Entities(any=["bicycle"])}, {"bike"}),
        ({"entities": Entities(none=["Ada"])}, {"cello"}),
        ({"memory_type": MemoryType(eq="episodic")}, {"cello"}),
        ({"memory_type": MemoryType(in_=["semantic", "message"])}, {"tea", "bike"}),
        ({"memory_type": MemoryType(not_in=["semantic"])}, {"cello"}),
        ({"created_at": CreatedAt(gte=now - DAY, lte=now + DAY)}, {"tea", "bike", "cello"}),
        ({"created_at": CreatedAt(gte=now - 2 * DAY, lte=now - DAY)}, set()),
        ({"last_accessed": {"gte": (now - DAY).isoformat()}}, {"tea", "bike", "cello"}),
        ({"namespace": Namespace(eq="elsewhere")}, set()),
    ]
    for given, wanted in cases:
        results = await client.search_long_term_memory("Ada", **given)
        assert {names.get(memory.id, memory.text) for memory in results.memories} == wanted, given
        assert results.total == len(wanted), given


async def all_pages(client: Client) -> None:
    stored = await three(client)
    pages = [memory.id async for memory in client.search_all_long_term_memories("Ada", batch_size=2)]
    assert sorted(pages) == sorted(record.id for record in stored.values())
    of_bob = [memory.text async for memory in client.search_all_long_term_memories("Ada", user_id=UserId(eq="bob"), batch_size=1)]
    assert of_bob == [FACTS["cello"]]


async def bulk(client: Client) -> None:
    batches = [[ClientMemoryRecord(text=f"The box {number} is blue.") for number in range(start, start + 3)] for start in (0, 3)]
    answers = await client.bulk_create_long_term_memories(batches, batch_size=2, delay_between_batches=0)
    assert [answer.status for answer in answers] == ["ok"] * 4
    for record in batches[0] + batches[1]:
        assert (await client.get_long_term_memory(record.id)).text == record.text


async def forgetting(client: Client) -> None:
    old = datetime.now(UTC) - 100 * DAY
    bygone, fresh = fact("tea", created_at=old, last_accessed=old), fact("bike")
    await client.create_long_term_memory([bygone, fresh])
    space = client.config.default_namespace
    await found(client, 2)
    answer = await client.forget_long_term_memories(ForgetPolicy(max_age_days=30), namespace=space, limit=10)
    assert (answer.scanned, answer.deleted, answer.deleted_ids, answer.dry_run) == (2, 1, [bygone.id], True)
    spared = await client.forget_long_term_memories(ForgetPolicy(max_age_days=30), namespace=space, pinned_ids=[bygone.id], dry_run=True)
    assert (spared.deleted, spared.deleted_ids) == (0, [])
    assert (await client.get_long_term_memory(bygone.id)).text == FACTS["tea"]


async def prompts(client: Client) -> None:
    await three(client)
    await client.append_messages_to_working_memory("chat", [{"role": "user", "content": "Hello"}, {"role": "tool", "content": "12:00"}])
    space: dict[str, Any] = {"namespace": {"eq": client.config.default_namespace}, "limit": 1}
    # The session has no user: its prompt shows no user's memories unless the search names one.
    others = await client.memory_prompt("What does Ada drink?", session_id="chat", long_term_search=space)
    assert others["long_term_memories"] is None
    space["user_id"] = {"eq": "ada"}
    answer = await client.memory_prompt(
        "What does Ada drink?", session_id="chat", model_name="gpt-4o", context_window_max=4000, long_term_search=space, optimize_query=True
    )
    roles = [message["role"] for message in answer["messages"]]
    assert roles == ["user", "assistant", "system", "user"]
    texts = [message["content"]["text"] for message in answer["messages"]]
    assert (texts[0], texts[1], texts[3]) == ("Hello", "12:00", "What does Ada drink?")
    assert FACTS["tea"] in texts[2]
    assert [memory["text"] for memory in answer["long_term_memories"]] == [FACTS["tea"]]
    hydrated = await client.hydrate_memory_prompt("Which instrument?", user_id={"eq": "bob"}, memory_type={"eq": "episodic"}, limit=2)
    assert [message["role"] for message in hydrated["messages"]] == ["system", "user"]
    assert FACTS["cello"] in hydrated["messages"][0]["content"]["text"]
    assert [memory["text"] for memory in hydrated["long_term_memories"]] == [FACTS["cello"]]
    nothing = await client.hydrate_memory_prompt("Which instrument?", namespace={"eq": "elsewhere"})
    assert "No relevant long-term memories found." in nothing["messages"][0]["content"]["text"]


async def tools(client: Client) -> None:
    stored = await three(client)
    answer = await client.search_memory_tool(
        "What does Ada drink?", topics=["food"], memory_type="semantic", max_results=2, min_relevance=0.1
    )
    assert [memory["text"] for memory in answer["memories"]] == [FACTS["tea"]]
    assert answer["memories"][0]["id"] == stored["tea"].id
    assert answer["total_found"] == 1
    note = await client.add_memory_tool("t", "Ada has a cat.", "semantic", topics=["pets"], entities=["Ada"])
    assert note["success"], note
    changed = await client.update_memory_data_tool("t", {"plan": "trip"}, merge_strategy="merge")
    assert changed["success"], changed
    read = await client.get_working_memory_tool("t")
    assert (read["session_id"], read["memory_count"], read["data"]) == ("t", 1, {"plan": "trip"})
    made = await client.get_or_create_working_memory_tool("t2")
    assert (made["created"], (await client.get_or_create_working_memory_tool("t2"))["created"]) == (True, False)


async def tool_calls(client: Client) -> None:
    stored = await three(client)

    async def call(name: str, arguments: dict[str, Any], user_id: str | None = None) -> Any:
        answer = await client.resolve_function_call(name, arguments, session_id="calls", user_id=user_id)
        assert answer["success"], answer
        return answer["result"]

    assert (await call("get_long_term_memory", {"memory_id": stored["tea"].id}))["memory"].text == FACTS["tea"]
    made = {"memories": [{"text": "Ada has a dog called Rex.", "memory_type": "semantic", "topics": ["pets"]}]}
    assert (await call("eagerly_create_long_term_memory", made, "ada"))["status"] == "ok"
    (dog,) = await found(client, 1, "Which dog?", topics=Topics(any=["pets"]))
    assert (dog.text, dog.user_id) == ("Ada has a dog called Rex.", "ada")
    await call("edit_long_term_memory", {"memory_id": dog.id, "text": "Ada has a dog called Max."})
    assert (await client.get_long_term_memory(dog.id)).text == "Ada has a dog called Max."
    assert "deleted 1" in str(await call("delete_long_term_memories", {"memory_ids": [dog.id]}))
    await call("lazily_create_long_term_memory", {"text": "Ada likes rain.", "memory_type": "semantic"})
    await call("update_working_memory_data", {"data": {"step": 2}})
    session = await call("get_or_create_working_memory", {})
    assert session["data"] == {"step": 2}, session
    assert session["memory_count"] == 1, session
    assert datetime.fromisoformat((await call("get_current_datetime", {}))["iso_utc"])
    shapes = [
        {"id": "1", "type": "function", "function": {"name": "search_memory", "arguments": json.dumps({"query": "tea"})}},
        {"type": "tool_use", "id": "2", "name": "search_memory", "input": {"query": "tea"}},
        {"name": "search_memory", "arguments": json.dumps({"query": "tea"})},
    ]
    one = await client.resolve_tool_call(shapes[0], session_id="calls")
    assert one["success"], one
    for answer in await client.resolve_tool_calls(shapes, session_id="calls"):
        assert answer["success"], answer
        assert answer["result"]["memories"][0]["text"] == FACTS["tea"]
    both = await client.resolve_function_calls(
        [{"name": "search_memory", "arguments": {"query": "cello"}}, {"name": "get_long_term_memory", "arguments": {"memory_id": "none"}}],
        session_id="calls",
    )
    assert both[0]["result"]["memories"][0]["text"] == FACTS["cello"]
    assert not both[1]["success"]
    assert "not found" in both[1]["error"]


async def refusals(client: Client) -> None:
    error = await refused(client.search_long_term_memory("x", limit=101), MemoryServerError)
    assert (error.status_code, "limit" in str(error)) == (422, True)
    error = await refused(client.edit_long_term_memory("x", {}), MemoryServerError)
    assert error.status_code == 400


async def refused(call: Awaitable[Any], kind: type[Exception]) -> Any:
    try:
        answer = await call
    except kind as error:
        return error
    raise AssertionError(f"not refused: {answer}")


async def absent_as_none(call: Awaitable[Any]) -> Any:
    try:
        return await call
    except MemoryNotFoundError:
        return None


SCENARIOS = (
    *(health, sessions, listing, get_or_create, data, appending, chat_messages, session_memories, records, searching, filters, all_pages),
    *(bulk, forgetting, prompts, tools, tool_calls, refusals),
)


async def main(base_url: str, parts: list[str]) -> None:
    watch, failures = Watch(), dict[str, str]()
    client_class = watch.watched(package.MemoryAPIClient)
    of_features = [scenario for part in parts for scenario in runpy.run_path(part)["scenarios"](sys.modules[__name__])]
    for scenario in (*SCENARIOS, *of_features):
        config = MemoryClientConfig(base_url=base_url, timeout=30, default_namespace=f"old-{ULID()}")
        async with client_class(config) as client:
            watch.listen(client._client)
            try:
                await scenario(client)
            except Exception:  # noqa: BLE001 the report tells of it
                failures[scenario.__name__] = traceback.format_exc()
    made = await package.create_memory_client(base_url)
    await made.close()
    report = {
        "version": importlib.metadata.version("agent-memory-client"),
        "talking": talking(package.MemoryAPIClient),
        "requests": watch.requests,
        "scenarios": [scenario.__name__ for scenario in (*SCENARIOS, *of_features)],
        "failures": failures,
    }
    print(json.dumps(report))


asyncio.run(main(sys.argv[1], sys.argv[2:]))
