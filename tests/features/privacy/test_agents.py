"""Test erasing, exporting and importing an agent's own data. Other data is not affected."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.keyspace import tag
from agent_memory.interfaces.http.app import create_app
from agent_memory_client import MemoryClient, MemoryClientConfig
from tests.support.rig import SCOPE, Rig, record
from tests.support.waiting import wait_until

COACH, COOK = "coach-7f3", "cook-91c"
USER = "ann"
SECRET, PLAIN = "xylophone", "marmalade"


class Face:
    def __init__(self, rig: Rig, http: httpx.AsyncClient, client: MemoryClient) -> None:
        self.rig = rig
        self.http = http
        self.client = client

    async def ok(self, method: str, path: str, **more: Any) -> Any:
        answer = await self.http.request(method, path, **more)
        assert answer.status_code == 200, (path, answer.text)
        return answer.json()

    async def settle(self) -> None:
        await self.rig.work()
        await self.rig.work(DueKind.DELETION)
        await self.rig.work()

    async def trace_none(self, *signs: str) -> None:
        """Wait until no key contains any of these strings. Derived data lags behind memories."""

        async def clean() -> bool:
            await self.settle()
            return not await traces(self.rig, *signs)

        await wait_until(clean, "no trace is left")

    async def export(self, agent: str) -> list[dict[str, Any]]:
        return [json.loads(line) async for line in self.client.agents.export(agent)]

    async def restore(self, agent: str, lines: list[dict[str, Any]]) -> dict[str, Any]:
        return (await self.client.agents.import_lines(agent, [json.dumps(line) for line in lines])).model_dump()


@pytest.fixture
async def face(rig: Rig) -> AsyncGenerator[Face]:
    transport = httpx.ASGITransport(create_app(rig.settings, rig.rt))
    async with (
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http,
        MemoryClient(MemoryClientConfig(base_url="http://127.0.0.1"), transport=transport) as client,
    ):
        yield Face(rig, http, client)


async def fill(face: Face, agent: str, word: str) -> None:
    """Store all kinds of data that an agent can own, such as blocks, sessions and memories."""
    pair = {"user_id": USER, "agent_id": agent}
    for owner in ({"agent_id": agent}, pair):
        await face.ok("PUT", "/v1/blocks/human", params=owner, json={"value": f"{word} is loud"})
        await face.ok("PATCH", "/v1/blocks/human", params=owner, json={"operation": "append", "content": f"more {word}"})
    await face.ok("PUT", "/v1/blocks/rules", params={"user_id": USER}, json={"value": "be kind"})
    await face.ok("POST", "/v1/blocks/rules/attach", params={"user_id": USER}, json={"agent_id": agent})
    said = {"role": "user", "content": f"My {word} stands in the hall", "id": f"{agent}-1", "created_at": "2026-01-01T10:00:00Z"}
    await face.ok("PUT", f"/v1/working-memory/of-{agent}", json={"messages": [said], **pair})
    # In a session without an agent, one message belongs to the agent.
    noted = {"role": "user", "content": f"I lent the {word} to Bo", "id": f"{word[:3]}-2", "remember_as": {"agent_id": agent}}
    other = {
        "role": "user",
        "content": f"The weather is fine, says Bo at {word[:3]}",
        "id": f"{word[:3]}-3",
        "created_at": "2026-01-02T10:00:00Z",
    }
    body = {"messages": [noted | {"created_at": "2026-01-02T09:00:00Z"}, other], "user_id": USER}
    await face.ok("PUT", f"/v1/working-memory/mixed-{agent[-3:]}", json=body)
    facts = [
        record(f"plays the {word}", f"{agent}-f1", user_id=USER, agent_id=agent, pinned=True),
        record(f"sold a {word}", f"{agent}-f2", agent_id=agent, namespace="home"),
    ]
    await face.rig.rt[MemoryService].store(SCOPE, facts)
    await face.ok("PATCH", f"/v1/long-term-memory/{agent}-f1", json={"text": f"plays the {word} well"})
    procedure = {"when_to_use": f"tuning a {word}", "steps": [f"strike the {word}"], **pair}
    await face.ok("POST", "/v1/procedures", json=procedure)
    await face.ok("POST", "/v1/tools/memory", json={"tool": f"{word}-tuner", "arguments": {"a": 1}, "agent_id": agent})
    await face.settle()


async def values_of(redis: Any, key: bytes) -> bytes:
    """Return a key's name and content as bytes."""
    reads = {
        b"string": lambda: redis.get(key),
        b"hash": lambda: redis.hgetall(key),
        b"list": lambda: redis.lrange(key, 0, -1),
        b"set": lambda: redis.smembers(key),
        b"zset": lambda: redis.zrange(key, 0, -1),
        b"stream": lambda: redis.xrange(key),
    }
    kind = await redis.type(key)
    value = await reads[kind]() if kind in reads else b""
    return key + b"\0" + (value if isinstance(value, bytes) else repr(value).encode())


async def traces(rig: Rig, *signs: str) -> list[tuple[str, str]]:
    """Return the keys whose name or content contains any of these strings."""
    hits: list[tuple[str, str]] = []
    async for key in rig.rt.client.scan_iter(match=f"{rig.settings.redis.key_prefix}:*", count=1000):
        whole = await values_of(rig.rt.client, key)
        hits += [(key.decode(), sign) for sign in signs if sign.encode() in whole]
    return hits


async def test_an_erased_agent_leaves_no_trace(face: Face) -> None:
    await fill(face, COACH, SECRET)
    await fill(face, COOK, PLAIN)
    signs = (COACH, tag(COACH), SECRET, tag(SECRET))
    assert {sign for _, sign in await traces(face.rig, *signs)} >= {COACH, tag(COACH), SECRET}
    answer = await face.http.delete(f"/v1/agents/{COACH}")
    assert answer.json() == {"status": "pending"}
    await face.settle()
    await face.trace_none(*signs)
    receipt = (await face.ok("GET", f"/v1/operations/{answer.headers['x-operation-id']}"))["stages"]
    assert {name: receipt[name] for name in ("blocks", "sessions", "procedures", "tools")} == {
        "blocks": 2,
        "sessions": 1,
        "procedures": 1,
        "tools": 1,
    }
    # Data of another agent, or of the user alone, remains.
    assert (await face.ok("GET", "/v1/blocks/human", params={"agent_id": COOK}))["value"] == f"{PLAIN} is loud\nmore {PLAIN}"
    rules = await face.ok("GET", "/v1/blocks/rules", params={"user_id": USER})
    assert [target["agent_id"] for target in rules["attached_to"]] == [COOK]
    assert (await face.ok("GET", f"/v1/long-term-memory/{COOK}-f1"))["text"] == f"plays the {PLAIN} well"
    sessions = (await face.ok("GET", "/v1/working-memory/", params={"user_id": USER}))["sessions"]
    assert sorted(sessions) == ["mixed-7f3", "mixed-91c", f"of-{COOK}"]
    assert [kept["when_to_use"] for kept in (await face.ok("GET", "/v1/procedures"))["procedures"]] == [f"tuning a {PLAIN}"]
    # The same order again finds nothing.
    again = await face.http.delete(f"/v1/agents/{COACH}")
    await face.settle()
    assert (await face.ok("GET", f"/v1/operations/{again.headers['x-operation-id']}"))["stages"] == {}


async def test_agent_can_be_erased_in_one_namespace_only(face: Face) -> None:
    await fill(face, COACH, SECRET)
    await face.ok("DELETE", f"/v1/agents/{COACH}", params={"namespace": "home"})
    await face.settle()
    left = await face.rig.rt[MemoryStore].get(SCOPE, [f"{COACH}-f1", f"{COACH}-f2"])
    assert left[0] is not None
    assert left[1] is None
    assert (await face.ok("GET", "/v1/blocks/human", params={"agent_id": COACH}))["version"] == 2


async def shown(face: Face, agent: str) -> list[Any]:
    """Return an agent's data as callers see it, excluding read times."""
    owners = ({"agent_id": agent}, {"user_id": USER, "agent_id": agent})
    asked = {"text": "", "agent_id": {"eq": agent}, "limit": 50}
    hits = (await face.ok("POST", "/v1/long-term-memory/search", json=asked))["memories"]
    session = await face.ok("GET", f"/v1/working-memory/of-{COACH}", params={"user_id": USER})
    procedures = (await face.ok("GET", "/v1/procedures", params={"agent_id": agent}))["procedures"]
    return [
        *[await face.ok("GET", f"/v1/blocks/human{path}", params=owner) for owner in owners for path in ("", "/history")],
        sorted((memory["text"], memory["pinned"], memory["user_id"], memory["namespace"], memory["created_at"]) for memory in hits),
        [(message["id"], message["content"], message["created_at"]) for message in session["messages"]],
        [(procedure["when_to_use"], procedure["steps"], procedure["user_id"], procedure["agent_id"]) for procedure in procedures],
        [tool["tool"] for tool in (await face.ok("GET", "/v1/tools/memory", params={"agent_id": agent}))["tools"]],
    ]


async def test_erased_agent_can_be_restored_from_its_export(face: Face) -> None:
    await fill(face, COACH, SECRET)
    await fill(face, COOK, PLAIN)
    before = await shown(face, COACH)
    lines = await face.export(COACH)
    assert lines[-1]["counts"] == {"header": 1, "block": 2, "procedure": 1, "tool_memory": 1, "memory": 4, "session": 1}
    assert PLAIN not in json.dumps(lines)
    assert COOK not in json.dumps(lines)
    await face.ok("DELETE", f"/v1/agents/{COACH}")
    await face.trace_none(COACH, tag(COACH), SECRET)
    report = await face.restore(COACH, lines)
    assert report["problems"] == []
    assert report["imported"] == {kind: count for kind, count in lines[-1]["counts"].items() if kind != "header"}
    await face.settle()
    assert await shown(face, COACH) == before
    assert len((await face.ok("GET", f"/v1/long-term-memory/{COACH}-f1/history"))["versions"]) == 2
    again = await face.restore(COACH, lines)
    assert (again["imported"], again["problems"]) == ({}, [])


async def test_agent_export_can_be_imported_as_another_agent(face: Face) -> None:
    await fill(face, COACH, SECRET)
    before = await shown(face, COACH)
    lines = await face.export(COACH)
    report = await face.restore("trainer", lines)
    await face.settle()
    # A session belongs to one agent: its id is taken, so it keeps its agent.
    assert [(problem["kind"], problem["id"]) for problem in report["problems"]] == [("session", f"of-{COACH}")]
    copied = await shown(face, "trainer")
    assert json.loads(json.dumps(copied).replace("trainer", COACH)) == json.loads(json.dumps(before))
    assert await shown(face, COACH) == before
    assert (await face.client.agents.delete("trainer")).status == "pending"
    await face.settle()
    assert await shown(face, COACH) == before


async def test_agent_import_refuses_kinds_that_agents_do_not_have(face: Face) -> None:
    header, *_ = await face.export(COACH)
    rules = {"kind": "rules", "namespace": None, "rules": {"timezone": "Europe/Lisbon"}}
    item = {"kind": "item", "namespace": None, "path": ["a"], "key": "b", "value": 1, "index": None, "ttl_minutes": None}
    report = await face.restore(COACH, [header, rules, item])
    assert [problem["kind"] for problem in report["problems"]] == ["rules", "item"]
    assert report["imported"] == {}
