"""Test personal data in procedures and tool memory.

Covers export, import, erasure, purges, and isolation between users.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.base import EmbeddingModel
from agent_memory.foundation.llm.tokens import TokenCounter
from tests.extensions.procedures.support import Server, serve
from tests.support.rig import open_rig

FLIGHT = "A flight is to be booked for a trip"
CALL = {"tool": "search_flights", "arguments": {"to": "Oslo"}, "took": 2}


@pytest.fixture(scope="module")
async def server(redis_url: str, local: EmbeddingModel, counter: TokenCounter) -> AsyncGenerator[Server]:
    async with open_rig(redis_url, local, counter, None) as rig, serve(rig) as server:
        yield server


async def fill(server: Server, user: str, **owner: str) -> Any:
    """Create tool calls, a learned procedure, and a procedure with a change and feedback."""
    made = await server.create(FLIGHT, f"Steps of {user}", user_id=user, **owner)
    await server.call("PATCH", f"/v1/procedures/{made['id']}", {"pitfalls": [f"Pitfalls of {user}"]})
    for helped in (True, False):
        await server.call("POST", f"/v1/procedures/{made['id']}/feedback", {"helped": helped, "score": 0.5, "comment": f"by {user}"})
    await server.put_session(f"s-{user}", f"Report for {user}", CALL, user_id=user, **owner)
    await server.mark(f"s-{user}", "success", user, owner.get("namespace"))
    return made


async def stored_of(server: Server, user: str, **owner: Any) -> tuple[list[Any], list[Any]]:
    procedures = (await server.call("GET", "/v1/procedures", user_id=user, **owner))["procedures"]
    tools = (await server.call("GET", "/v1/tools/memory", user_id=user, **owner))["tools"]
    return sorted(procedures, key=lambda one: one["when_to_use"]), tools


async def export(server: Server, user: str) -> bytes:
    answer = await server.http.post(f"/v1/users/{user}/export")
    assert answer.status_code == 200, answer.text
    return answer.content


async def bring_in(server: Server, user: str, lines: bytes) -> Any:
    headers = {"content-type": "application/x-ndjson"}
    answer = await server.http.post(f"/v1/users/{user}/import", content=lines, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def erase(server: Server, user: str) -> None:
    await server.call("DELETE", f"/v1/users/{user}")
    await server.rig.work(DueKind.DELETION)


async def dump(server: Server) -> str:
    """Return the entire store as text."""
    parts: list[str] = []
    client = server.rig.rt.client
    async for key in client.scan_iter(match=server.rig.keys.root + "*", count=1000):
        parts.append(repr(key))
        match await client.type(key):
            case b"string":
                parts.append(repr(await client.get(key)))
            case b"hash":
                parts.append(repr(await client.hgetall(key)))
            case b"list":
                parts.append(repr(await client.lrange(key, 0, -1)))
            case b"set":
                parts.append(repr(await client.smembers(key)))
            case b"zset":
                parts.append(repr(await client.zrange(key, 0, -1)))
            case other:
                assert other in (b"stream", b"none"), other
    return "\n".join(parts)


async def test_export_and_import_restore_procedures_unchanged(server: Server) -> None:
    made = await fill(server, "ada", namespace="work")
    before = await stored_of(server, "ada")
    history = await server.call("GET", f"/v1/procedures/{made['id']}/history")
    lines = await export(server, "ada")
    assert sorted(json.loads(line)["kind"] for line in lines.splitlines()).count("procedure") == 2
    same = await bring_in(server, "ada", lines)
    assert await stored_of(server, "ada") == before, same
    await erase(server, "ada")
    assert await stored_of(server, "ada") == ([], [])
    await bring_in(server, "ada", lines)
    await server.work()
    assert await stored_of(server, "ada") == before
    assert await server.call("GET", f"/v1/procedures/{made['id']}/history") == history
    assert [one["id"] for one in await server.search("get me a plane ticket", user_id="ada")][:1] == [made["id"]]
    assert (await server.call("POST", f"/v1/procedures/{made['id']}/undo"))["pitfalls"] == []


async def test_import_restores_session_results_without_counting_calls_again(server: Server) -> None:
    await server.put_session("told", "Report for fay", CALL, user_id="fay")
    before = await server.mark("told", "success", "fay", score=0.5, comment="well done")
    lines = await export(server, "fay")
    await erase(server, "fay")
    await bring_in(server, "fay", lines)
    await server.work()
    after = await server.call("GET", "/v1/session-results/told", user_id="fay")
    # A line of an import names no procedure: the procedure could belong to another user.
    assert before.pop("procedure_id")
    assert {name: value for name, value in after.items() if name != "procedure_id"} == before
    assert [tool["succeeded"] for tool in (await stored_of(server, "fay"))[1]] == [1], "its calls are not counted again"


async def test_pending_result_of_an_export_is_learned_after_import(server: Server) -> None:
    await server.put_session("waits", "Report for iris", CALL, user_id="iris")
    await server.call("PATCH", "/v1/working-memory/waits/result", {"result": "success"}, user_id="iris")
    lines = await export(server, "iris")
    await erase(server, "iris")
    report = await bring_in(server, "iris", lines)
    assert report["problems"] == []
    await server.work()
    result = await server.call("GET", "/v1/session-results/waits", user_id="iris")
    assert result["learned"] == "created"
    procedures, tools = await stored_of(server, "iris")
    assert [one["id"] for one in procedures] == [result["procedure_id"]]
    assert [(tool["succeeded"], tool["failed"]) for tool in tools] == [(1, 0)]
    # A second import does not learn the result again.
    await bring_in(server, "iris", lines)
    await server.work()
    assert (await stored_of(server, "iris")) == (procedures, tools)


async def test_repeated_result_reorders_lost_learning(server: Server) -> None:
    await server.put_session("lost", "Report for hal", CALL, user_id="hal")
    await server.call("PATCH", "/v1/working-memory/lost/result", {"result": "success"}, user_id="hal")
    await server.rig.rt.client.delete(server.rig.keys.due(DueKind.ORDER))
    await server.work()
    assert (await server.call("GET", "/v1/session-results/lost", user_id="hal"))["learned"] == "waiting"
    assert (await server.mark("lost", "success", "hal"))["learned"] == "created"


async def test_import_under_another_user_makes_a_copy(server: Server) -> None:
    made = await fill(server, "bea")
    lines = await export(server, "bea")
    for _ in range(2):
        await bring_in(server, "bess", lines)
    procedures, tools = await stored_of(server, "bess")
    assert [(one["user_id"], one["helped"], one["failed"]) for one in procedures] == [("bess", 1, 1), ("bess", 0, 0)]
    assert made["id"] not in {one["id"] for one in procedures}
    assert [(tool["tool"], tool["succeeded"], tool["user_id"]) for tool in tools] == [("search_flights", 1, "bess")]
    assert (await server.call("POST", f"/v1/procedures/{procedures[0]['id']}/undo"))["user_id"] == "bess"
    assert len((await stored_of(server, "bea"))[0]) == 2


async def test_erasure_leaves_nothing_of_the_user(server: Server) -> None:
    await fill(server, "zebulon")
    await fill(server, "cleo")
    await server.put_session("late", "Report for zebulon", CALL, user_id="zebulon")
    await server.call("PATCH", "/v1/working-memory/late/result", {"result": "success"}, user_id="zebulon")
    assert "zebulon" in await dump(server)
    before = await stored_of(server, "cleo")
    await erase(server, "zebulon")
    await server.work()
    left = await dump(server)
    assert "zebulon" not in left
    assert b"zebulon".hex() not in left
    assert await stored_of(server, "cleo") == before


async def test_erasing_one_namespace_keeps_the_others(server: Server) -> None:
    await fill(server, "dora", namespace="work")
    await server.create(FLIGHT, user_id="dora", namespace="home")
    await server.call("DELETE", "/v1/users/dora", namespace="work")
    await server.rig.work(DueKind.DELETION)
    procedures, tools = await stored_of(server, "dora")
    assert [one["namespace"] for one in procedures] == ["home"]
    assert tools == []


async def test_purging_a_session_deletes_procedures_learned_from_it(server: Server) -> None:
    stated = await server.create("Report for eve", "By hand.", user_id="eve")
    await server.put_session("e1", "Report for eve", CALL, {"tool": "mail", "said": "Error: secret-eve"}, user_id="eve")
    await server.mark("e1", "failure", "eve")
    await server.put_session("e2", "Book a flight to Rome", CALL, user_id="eve")
    await server.mark("e2", "success", "eve")
    assert len((await stored_of(server, "eve"))[0]) == 2
    for session in ("e1", "e2"):
        await server.call("DELETE", f"/v1/working-memory/{session}", user_id="eve", memories="true")
    await server.rig.work(DueKind.DELETION)
    (left,) = (await stored_of(server, "eve"))[0]
    assert (left["id"], left["pitfalls"], left["learned_from"]) == (stated["id"], [], [])
    history = await server.call("GET", f"/v1/procedures/{stated['id']}/history")
    assert history["changes"] == []


async def test_procedures_of_two_users_stay_separate(server: Server) -> None:
    for user in ("gil", "gus"):
        await server.put_session(f"same-{user}", "Write the report", CALL, user_id=user)
        result = await server.mark(f"same-{user}", "success", user)
        assert result["learned"] == "created"
    for user, other in (("gil", "gus"), ("gus", "gil")):
        (procedure,), (tool,) = await stored_of(server, user)
        assert (procedure["user_id"], tool["user_id"], tool["succeeded"]) == (user, user, 1)
        found = await server.search("Write the report", user_id=user, limit=50)
        assert {one["user_id"] for one in found} == {user}
        assert other not in json.dumps(found)
