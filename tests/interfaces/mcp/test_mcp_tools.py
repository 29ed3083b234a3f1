"""Call every tool over every transport, and compare the results with REST."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from ulid import ULID

from tests.interfaces.mcp.conftest import PREFIX, Server
from tests.support.mcp import Session, over_http, over_sse, over_stdio
from tests.support.waiting import wait_until

TRANSPORTS = ("streamable-http", "streamable-http-legacy", "sse", "stdio")


@asynccontextmanager
async def connected(transport: str, server: Server, folder: Path) -> AsyncGenerator[Session]:
    if transport == "stdio":
        # A separate process on the same data; the worker is the server's.
        environment = {"REDIS_URL": server.redis_url, "KEY_PREFIX": PREFIX, "MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local"}
        async with over_stdio(folder, ["--task-backend", "docket"], **environment) as session:
            yield session
    elif transport == "sse":
        async with over_sse(f"{server.sse_url}/sse") as session:
            yield session
    else:
        async with over_http(f"{server.url}/mcp", mode="legacy" if transport.endswith("legacy") else "auto") as session:
            yield session


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_every_tool_agrees_with_rest(transport: str, server: Server, tmp_path: Path) -> None:
    namespace = f"{transport}-{ULID()}"
    async with connected(transport, server, tmp_path) as session:
        tools = {tool.name: tool for tool in (await session.client.list_tools()).tools}
        await the_time(session)
        await memories(session, server, namespace)
        await sessions(session, server, namespace)
        await prompts(session, server, namespace)
        await compaction(session, server, namespace)
        await forgetting(session, server, namespace)
        await core_memory(session, server, namespace)
        await archive(session, server, namespace)
        await profiles(session, server, namespace)
        await timelines(session, server, namespace)
        await procedures(session, server, namespace)
        await refusals(session)
        # Fail for tools that no test calls.
        assert session.called == tools.keys()
        assert all(tool.description and tool.output_schema for tool in tools.values())


async def test_memories_created_without_ids_are_edited_and_deleted_by_search_result_ids(server: Server) -> None:
    scope = {"user_id": "ada", "namespace": f"no-ids-{ULID()}"}
    texts = ["Ada plays the violin.", "Ada lives in Lisbon.", "Ada is allergic to nuts."]
    async with over_http(f"{server.url}/mcp") as session:
        for text in texts:
            await session.call("create_long_term_memories", memories=[{"text": text, **scope}])
        query = {"text": None, "namespace": scope["namespace"], "user_id": "ada"}
        found = {hit["text"]: hit["id"] for hit in (await session.call("search_long_term_memory", **query))["memories"]}
        assert found.keys() == set(texts)
        for text, memory_id in found.items():
            assert (await rest(server, "GET", f"/v1/long-term-memory/{memory_id}"))["text"] == text
        for text, memory_id in found.items():
            changed = await session.call("edit_long_term_memory", memory_id=memory_id, text=f"{text} Indeed.")
            assert changed["text"] == f"{text} Indeed."
        gone = await session.call("delete_long_term_memories", memory_ids=list(found.values()))
        assert gone["status"] == "ok, deleted 3 memories"


async def forgetting(session: Session, server: Server, namespace: str) -> None:
    scope = {"user_id": "forgetful", "namespace": namespace}
    texts = ["User is allergic to peanuts", "User's email address is a@b.example", "Anna's address is 5 Elm Road"]
    await session.call("create_long_term_memories", memories=[{"text": text, **scope} for text in texts])
    shown = await session.call("forget_memory", text="that I am allergic to peanuts", **scope)
    assert shown["dry_run"]
    assert [match["text"] for match in shown["matches"] if match["clear"]] == texts[:1]
    assert not shown["forgotten"]
    asked = await session.call("forget_memory", text="my address", dry_run=False, **scope)
    assert asked["ambiguous"]
    assert {match["text"] for match in asked["matches"]} == set(texts[1:])
    assert not asked["forgotten"]
    gone = await session.call("forget_memory", text="that I am allergic to peanuts", dry_run=False, **scope)
    assert gone["forgotten"] == {"facts": 1}
    again = await rest(server, "POST", "/v1/memory/forget", {"text": "I am allergic to peanuts", **scope})
    assert not again["forgotten"]
    assert (await rest(server, "POST", f"/v1/memory/forget/{gone['receipt_id']}/undo"))["restored"]["memories"] == 1


async def core_memory(session: Session, server: Server, namespace: str) -> None:
    """Check that editing an agent's block does not change the namespace's block."""
    scope = {"agent_id": "coach", "user_id": "ada", "namespace": namespace}
    for names in (("agent_id", "user_id", "namespace"), ("namespace",)):
        params = {name: scope[name] for name in names}
        (await server.rest.put("/v1/blocks/human", params=params, json={"value": "Name: Ada"})).raise_for_status()
    done = await session.call("core_memory_append", label="human", content="Runs at dawn", **scope)
    assert done["change"]["said"] == "appended 13 characters"
    done = await session.call("core_memory_replace", label="human", old_content="dawn", new_content="dusk", **scope)
    assert done["block"]["value"] == "Name: Ada\nRuns at dusk"
    assert (await server.rest.get("/v1/blocks/human", params={"namespace": namespace})).json()["value"] == "Name: Ada"
    for asked in ({}, {"session_id": "new"}):
        prompt = await session.call("memory_prompt", query="When does Ada run?", **scope, **asked)
        assert "Runs at dusk" in prompt["messages"][0]["content"]["text"], asked
    refused = await session.error("core_memory_replace", label="human", old_content="Name Ada", new_content="x", **scope)
    assert "Line 1 is the most similar: Name: Ada" in refused
    assert "there are: human" in await session.error("core_memory_append", label="persona", content="x", **scope)
    await letta_names(session, scope)


async def letta_names(session: Session, scope: dict[str, str]) -> None:
    """Check that the tools accept Letta's names and `section` as an alias for `label`."""

    async def value(tool: str, **arguments: Any) -> str:
        return (await session.call(tool, **arguments, **scope))["block"]["value"]

    assert await value("memory_insert", label="human", new_str="Has a cat") == "Name: Ada\nRuns at dusk\nHas a cat"
    assert await value("memory_insert", label="human", new_str="# Ada", insert_line=0) == "# Ada\nName: Ada\nRuns at dusk\nHas a cat"
    assert await value("memory_insert", label="human", new_str="Lives in Oslo", insert_line=2) == (
        "# Ada\nName: Ada\nLives in Oslo\nRuns at dusk\nHas a cat"
    )
    assert await value("memory_replace", label="human", old_str="\nHas a cat") == "# Ada\nName: Ada\nLives in Oslo\nRuns at dusk"
    assert "is the most similar: " in await session.error("memory_replace", label="human", old_str="Lives at Oslo", new_str="x", **scope)
    assert await value("memory_rethink", section="human", new_memory="Ada runs in Oslo") == "Ada runs in Oslo"
    assert await value("core_memory_append", section="human", content="at dusk") == "Ada runs in Oslo\nat dusk"
    assert await session.call("memory_finish_edits") == {"status": "ok"}


async def archive(session: Session, server: Server, namespace: str) -> None:
    """Check that archives and conversations are separate and limited to a user or agent."""
    scope, agent = {"user_id": "archived", "namespace": namespace}, {"agent_id": "librarian", "namespace": namespace}
    stored = await session.call("archival_memory_insert", content="Ada grew up in Setúbal", tags=["childhood"], **scope)
    assert (await rest(server, "GET", f"/v1/long-term-memory/{stored['id']}"))["user_id"] == "archived"
    own = await session.call("archival_memory_insert", content="Ask for the shelf mark first", **agent)
    assert (await rest(server, "GET", f"/v1/long-term-memory/{own['id']}"))["agent_id"] == "librarian"
    said = {"messages": [{"role": "user", "content": "My violin needs new strings", "created_at": "2026-03-02T23:30:00Z"}], **scope}
    await server.rest.post("/v1/working-memory/strings/messages", params={"wait": "promoted"}, json=said)

    async def texts(tool: str, **asked: Any) -> list[str]:
        return [memory["text"] for memory in (await session.call(tool, **asked))["memories"]]

    for tags in ({}, {"tags": ["childhood"], "start_date": "2020-01-01", "end_date": "2999-12-31"}):
        assert await texts("archival_memory_search", query="Setúbal", **tags, **scope) == ["Ada grew up in Setúbal"]
    assert await texts("archival_memory_search", query="", end_date="2020-01-01", **scope) == []
    assert await texts("archival_memory_search", query="", **agent) == ["Ask for the shelf mark first"]
    assert await texts("conversation_search", query="violin strings", **scope) == ["My violin needs new strings"]
    assert await texts("conversation_search", query="violin strings", **agent) == []
    days = {"start_date": "2026-03-02", "end_date": "2026-03-02"}
    page = await session.call("conversation_search_date", **days, **scope)
    assert [memory["text"] for memory in page["memories"]] == ["My violin needs new strings"]
    assert (page["total"], page["page"], page["has_more"]) == (1, 0, False)
    days["end_date"] = "9999-12-31"
    assert await texts("conversation_search_date", **days, **scope) == ["My violin needs new strings"]
    assert "start_date" in await session.error("conversation_search_date", start_date="soon", end_date="2026-03-02", **scope)
    for wrong in ({"content": "long " * 20_000}, {"content": " "}, {"content": "Ada sings", "tags": ["food, travel"]}):
        field = [*wrong][-1]
        assert (await session.error("archival_memory_insert", **wrong, **scope)).startswith(f"422: {field}: ")


async def profiles(session: Session, server: Server, namespace: str) -> None:
    scope = {"user_id": "profiled", "namespace": namespace}
    await session.call("create_long_term_memories", memories=[{"text": "I am training for a marathon.", **scope}])

    async def current() -> bool:
        return bool((await session.call("get_profile", **scope))["dynamic"])

    await wait_until(current, "the profile of what was stored")
    profile = await session.call("get_profile", **scope)
    assert [entry["text"] for entry in profile["dynamic"]] == ["I am training for a marathon."]
    rest_profile = (await server.rest.get("/v1/profile", params=scope)).json()
    assert profile["version"] == rest_profile["version"]
    assert profile["dynamic"] == rest_profile["dynamic"]


async def timelines(session: Session, server: Server, namespace: str) -> None:
    scope = {"user_id": "dated", "namespace": namespace}
    event = {"text": "Ada flew to Rome.", "memory_type": "episodic", "event_date": "2024-03-05T00:00:00Z", **scope}
    await session.call("create_long_term_memories", memories=[event])
    march = {"from": "2024-03-01", "to": "2024-03-31", **scope}

    async def happened() -> bool:
        return bool((await session.call("get_timeline", **march))["events"])

    await wait_until(happened, "the event of what was stored")
    timeline = await session.call("get_timeline", **march)
    assert [(event["text"], event["start"]) for event in timeline["events"]] == [("Ada flew to Rome.", "2024-03-05")]
    assert timeline["events"] == (await server.rest.get("/v1/timeline", params=march)).json()["events"]
    assert not (await session.call("get_timeline", **{**march, "to": "2024-03-04"}))["events"]
    asked = {"query": "What happened in March 2024?", "include_long_term_search": True, "sections": {"timeline": {"tokens": 300}}}
    told = await session.call("memory_prompt", **asked, user_id={"eq": "dated"}, namespace={"eq": namespace})
    assert any("- 2024-03-05: Ada flew to Rome. (said by dated)" in message["content"]["text"] for message in told["messages"])


async def procedures(session: Session, server: Server, namespace: str) -> None:
    scope = {"user_id": "ada", "namespace": namespace}
    saved = await session.call("save_procedure", when_to_use="The tap drips", steps=["close the valve", "change the washer"], **scope)
    assert await rest(server, "GET", f"/v1/procedures/{saved['id']}") == saved
    hits = (await session.call("search_procedures", situation="the tap in the kitchen drips", **scope))["procedures"]
    assert [hit["id"] for hit in hits] == [saved["id"]]


async def the_time(session: Session) -> None:
    now = await session.call("get_current_datetime")
    assert now.keys() == {"iso_utc", "unix_ts"}
    assert now["iso_utc"].endswith("Z")
    assert isinstance(now["unix_ts"], int)


async def memories(session: Session, server: Server, namespace: str) -> None:
    one, scope = f"{namespace}-1", {"namespace": namespace, "user_id": "ada"}
    stored = await session.call(
        "create_long_term_memories",
        memories=[
            {"id": one, "text": "Ada is allergic to peanuts.", "topics": ["food"], **scope},
            {"text": "Ada moved to Lisbon.", "memory_type": "episodic", "event_date": "2026-03-01T00:00:00Z", "topics": ["home"], **scope},
        ],
    )
    assert stored == {"status": "ok"}

    read = await session.call("get_long_term_memory", memory_id=one)
    assert steady(read) == steady(await rest(server, "GET", f"/v1/long-term-memory/{one}"))
    assert (read["memory_type"], read["discrete_memory_extracted"], read["topics"]) == ("semantic", "t", ["food"])

    await rested(server)
    for filters in (
        {},
        {"topics": {"any": ["food", "travel"]}},
        {"memory_type": {"in_": ["episodic"]}},
        {"event_date": {"gte": "2026-02-01T00:00:00Z", "lt": "2026-04-01T00:00:00Z"}},
        {"topics": {"none": ["food"]}, "limit": 1, "search_mode": "keyword"},
    ):
        asked: dict[str, Any] = {"text": "What is Ada allergic to?", "namespace": {"eq": namespace}, **filters}
        found = steady(await session.call("search_long_term_memory", **asked))
        assert found == steady(await rest(server, "POST", "/v1/long-term-memory/search", asked))
    everything = steady(await session.call("search_long_term_memory", text=None, namespace={"eq": namespace}))
    assert everything["total"] == 2
    # As models write it: JSON in a string, a plain word for equality.
    again = await session.call("search_long_term_memory", text=None, namespace=f'{{"eq": "{namespace}"}}', user_id="ada")
    assert steady(again) == everything
    doubtful = f"{namespace}-doubtful"
    record = {"id": doubtful, "text": "A page says Ada likes nuts.", "namespace": namespace, "user_id": "ada", "trust": 0.2}
    await session.call("create_long_term_memories", memories=[record])
    assert (await session.call("search_long_term_memory", text=None, namespace={"eq": namespace}))["total"] == 3
    assert (await session.call("search_long_term_memory", text=None, namespace={"eq": namespace}, min_trust=0.5))["total"] == 2
    await session.call("delete_long_term_memories", memory_ids=[doubtful])

    changed = await session.call("edit_long_term_memory", memory_id=one, text="Ada is allergic to nuts.", topics=[], pinned=True)
    assert steady(changed) == steady(await rest(server, "GET", f"/v1/long-term-memory/{one}"))
    assert (changed["text"], changed["topics"] or [], changed["pinned"]) == ("Ada is allergic to nuts.", [], True)
    renamed = await session.call("edit_long_term_memory", memory_id=one, text="Ada is allergic to nuts", user_id=None, namespace=None)
    assert (renamed["user_id"], renamed["namespace"]) == (changed["user_id"], namespace), "a model sends null for what it leaves out"

    assert await session.call("delete_long_term_memories", memory_ids=[one, "unknown"]) == {"status": "ok, deleted 1 memories"}
    assert (await server.rest.get(f"/v1/long-term-memory/{one}")).status_code == 404


async def sessions(session: Session, server: Server, namespace: str) -> None:
    scope = {"namespace": namespace, "user_id": "ada"}
    empty = await session.call("get_working_memory", session_id="monday", **scope)
    assert (empty["session_id"], empty["messages"]) == ("monday", [])
    stored = await session.call(
        "set_working_memory",
        session_id="monday",
        messages=[
            {"role": role, "content": f"Turn {n}.", "created_at": f"2026-11-20T10:0{n}:00Z"} for n, role in enumerate(("user", "assistant"))
        ],
        memories=[{"text": "Ada plays the cello.", "user_id": "somebody else"}],
        context="They met.",
        data={"step": 2},
        model_name="gpt-4o",
        **scope,
    )
    assert stored["ttl_seconds"] is None, "as REST has it, not one hour"
    assert stored["context_percentage_total_used"] > 0
    assert stored["memories"][0]["user_id"] == "ada", "the session's user owns what is said in it"

    async def promoted() -> bool:
        return (await session.call("get_working_memory", session_id="monday", **scope))["memories"][0]["persisted_at"] is not None

    await wait_until(promoted, "the session's memory is a long-term memory")
    read = await session.call("get_working_memory", session_id="monday", recent_messages_limit=1, **scope)
    assert read == await rest(server, "GET", "/v1/working-memory/monday", params={**scope, "recent_messages_limit": 1})
    assert [message["content"] for message in read["messages"]] == ["Turn 1."]
    assert (read["context"], read["data"]) == ("They met.", {"step": 2})
    expiring = await session.call(
        "set_working_memory", session_id="tuesday", messages='[{"role": "user", "content": "Hi."}]', ttl_seconds=60, **scope
    )
    assert expiring["ttl_seconds"] == 60


async def prompts(session: Session, server: Server, namespace: str) -> None:
    await rested(server)
    found = await session.call(
        "memory_prompt",
        query="Which instrument does Ada play?",
        session_id={"eq": "tuesday"},
        namespace={"eq": namespace},
        user_id={"eq": "ada"},
    )
    assert "Ada plays the cello." in found["messages"][-2]["content"]["text"], "a memory of another session"
    asked = {
        "query": "Which instrument does Ada play?",
        "session": {"session_id": "tuesday", "namespace": namespace, "user_id": "ada"},
        "long_term_search": {"namespace": {"eq": namespace}, "user_id": {"eq": "ada"}},
    }
    same = await rest(server, "POST", "/v1/memory/prompt", asked)
    for message in same["messages"]:
        message["content"]["meta"] = message["content"].pop("_meta")
    assert steady(found) == steady(same)
    assert found["messages"][-1] == {"role": "user", "content": {"type": "text", "text": asked["query"], "annotations": None, "meta": None}}
    alone = await session.call(
        "memory_prompt", query="Hello?", session_id={"eq": "tuesday"}, namespace=namespace, include_long_term_search=False
    )
    assert alone["long_term_memories"] is None


async def compaction(session: Session, server: Server, namespace: str) -> None:
    place = {"namespace": namespace, "user_id": "ada"}
    here = (await session.call("compact_long_term_memories", **place, session_id="nowhere"))["status"]
    assert here == "ok, 0 memories remaining after compaction"
    told = (await session.call("compact_long_term_memories", **place))["status"]
    count = await rest(server, "POST", "/v1/long-term-memory/search", {"namespace": {"eq": namespace}})
    assert told == f"ok, {count['total']} memories remaining after compaction"


async def refusals(session: Session) -> None:
    """Check that failures return an error with a hint, never an empty result."""
    missing = await session.error("get_long_term_memory", memory_id="nobody")
    assert missing.startswith("404: Memory with ID nobody not found: check memory_id, ")
    assert (await session.error("edit_long_term_memory", memory_id="nobody", text="x")).startswith("404: ")
    assert (await session.error("edit_long_term_memory", memory_id="nobody")).startswith("400: ")
    assert await session.error("search_long_term_memory") == "422: text: is required: add it"
    assert (await session.error("search_long_term_memory", text="x", topics={})).startswith("422: topics: must have an operator")
    assert (await session.error("memory_prompt", query="x", session_id={"any": ["a", "b"]})).startswith("400: session_id: name one session")
    assert (await session.error("memory_prompt", query="x", include_long_term_search=False)).startswith("400: ")


_MOVING = {"last_accessed", "access_count", "score"}


def steady(found: Any) -> Any:
    """Remove scores, which other tests affect, and fields that change on every read."""
    if isinstance(found, list):
        return [steady(one) for one in found]
    if isinstance(found, dict):
        return {name: steady(value) for name, value in found.items() if name not in _MOVING}
    return found


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_prompts_and_resources_are_listed(transport: str, server: Server, tmp_path: Path) -> None:
    async with connected(transport, server, tmp_path) as session:
        assert [prompt.name for prompt in (await session.client.list_prompts()).prompts] == ["what_do_you_know_about_me"]
        assert [each.name for each in (await session.client.list_resources()).resources] == ["profile_page"]
        assert len((await session.client.list_resource_templates()).resource_templates) == 3


async def test_tools_return_procedural_memory_type(server: Server) -> None:
    namespace, how = f"kinds-{ULID()}", "To tune a cello, begin with the A string."
    async with over_http(f"{server.url}/mcp") as session:
        memory = {"id": f"how-{namespace}", "text": how, "memory_type": "procedural", "namespace": namespace}
        await session.call("create_long_term_memories", memories=[memory])
        for kind, count in (("procedural", 1), ("semantic", 0)):
            found = await session.call("search_long_term_memory", text="tune a cello", namespace=namespace, memory_type=kind)
            assert [one["memory_type"] for one in found["memories"]] == [kind] * count
        assert (await session.call("get_long_term_memory", memory_id=memory["id"]))["memory_type"] == "procedural"


async def rested(server: Server) -> None:
    """Wait until the worker is idle, so that rankings no longer change."""

    async def nothing_pending() -> bool:
        return not any(kind["pending"] for kind in (await rest(server, "GET", "/v1/ready"))["checks"]["work"].values())

    await wait_until(nothing_pending, "the worker's rest")


async def rest(server: Server, method: str, path: str, body: Any = None, *, params: Any = None) -> Any:
    answer = await server.rest.request(method, path, json=body, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()
