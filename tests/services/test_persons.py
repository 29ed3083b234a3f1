"""Export and import: a user's data leaves whole, comes back as it was, and brings nothing else with it (row S8)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from agent_memory.api.app import create_app
from agent_memory.storage.decisions import Origin
from agent_memory.storage.erasure import Erasure
from agent_memory.tasks import DueKind
from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from agent_memory_client.models import MemoryRecord, MemoryTypeEnum
from agent_memory_worker.erase import erase
from tests.support.rig import SCOPE, Rig, record

ANN, BOB = "ann", "bob"
OLD = datetime(2024, 5, 1, 12, tzinfo=UTC)


@dataclass
class Face:
    """A rig with its API and a client of it."""

    rig: Rig
    http: httpx.AsyncClient
    client: MemoryAPIClient

    async def ok(self, method: str, path: str, **more: Any) -> Any:
        answer = await self.http.request(method, path, **more)
        assert answer.status_code == 200, (path, answer.text)
        return answer.json()

    async def lines(self, user: str = ANN, namespace: str | None = None) -> list[bytes]:
        return [line async for line in self.client.export_user(user, namespace)]

    async def erase(self, user: str) -> None:
        mark = await self.rig.rt.longterm.erase(SCOPE, Erasure(SCOPE.tenant, None, user, None))
        await erase(self.rig.rt, mark.member)
        await self.rig.work(DueKind.DELETION)


@asynccontextmanager
async def faced(rig: Rig) -> AsyncGenerator[Face]:
    transport = httpx.ASGITransport(create_app(rig.settings, rig.rt))
    config = MemoryClientConfig(base_url="http://127.0.0.1")
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        async with MemoryAPIClient(config, transport=transport) as client:
            yield Face(rig, http, client)


@pytest.fixture
async def face(rig: Rig) -> AsyncGenerator[Face]:
    async with faced(rig) as one:
        yield one


def said(*texts: str, user: str = ANN, **more: Any) -> dict[str, Any]:
    messages = [
        {
            "role": "user" if n % 2 == 0 else "assistant",
            "content": text,
            "id": f"{user}-{text[:20]}",
            "created_at": f"2026-01-0{n + 1}T10:00:00Z",
        }
        for n, text in enumerate(texts)
    ]
    return {"user_id": user, "messages": messages, **more}


async def fill(face: Face, user: str, word: str) -> None:
    """All kinds of data: sessions, promoted messages, facts with versions, slots, evidence, other names, changes, what is over, rules."""
    rig = face.rig
    body = said(f"the {word} is loud", f"is the {word} yours?", f"yes, the {word} of my aunt", user=user)
    data = {"data": {"mood": word, "deep": {"a": [1, None, 2.5]}}, "context": f"they speak of the {word}", "namespace": "home"}
    await face.ok("PUT", f"/v1/working-memory/{user}-s1", json=body | data | {"tokens": 7})
    await face.ok("PUT", f"/v1/working-memory/{user}-s2", json=said(f"a short {word}", user=user, ttl_seconds=5000))
    await rig.work()

    def fact(name: str, text: str, **more: Any) -> MemoryRecord:
        return record(text, f"{user}-{name}", user_id=user, namespace="home", **more)

    made = OLD
    facts = [
        fact("f1", f"{word} lessons on Monday", created_at=made, pinned=True, topics=["music"], metadata={"room": 4, "who": "Eve"}),
        fact("f2", f"lives near the {word} hall", created_at=made + timedelta(days=1), slot="home"),
        fact("f3", f"sold the {word} in May", memory_type=MemoryTypeEnum.EPISODIC, event_date=made, created_at=made + timedelta(days=2)),
        fact("f4", f"rents a {word}", created_at=made, valid_to=made + timedelta(days=3)),
    ]
    await rig.rt.longterm.store(SCOPE, facts)
    await rig.work()
    await face.ok("PATCH", f"/v1/long-term-memory/{user}-f1", json={"text": f"{word} lessons on Tuesday"})
    # The same words again are evidence and another name, another fact of the slot ends the first.
    await rig.rt.longterm.store(SCOPE, [fact("f5", f"sold the {word} in May", memory_type=MemoryTypeEnum.EPISODIC, event_date=made)])
    await rig.rt.longterm.store(SCOPE, [fact("f6", f"lives by the {word} shop", created_at=made + timedelta(days=9), slot="home")])
    await rig.rt.longterm.store(SCOPE, [fact("f7", f"hums like a {word}")])
    found = (await rig.rt.memories.find(SCOPE, [f"{user}-f7"]))[0]
    assert found is not None
    assert await rig.rt.decisions.forget(SCOPE, [found], Origin("test", "for this test"), batch="b1")
    await face.ok("PUT", "/v1/extraction-rules", params={"user_id": user}, json={"instructions": f"mind the {word}"})
    view = await face.ok("POST", "/v1/summary-views", json={"source": "long_term", "group_by": ["user_id"]})
    await face.ok("POST", f"/v1/summary-views/{view['id']}/partitions/run", json={"group": {"user_id": user}})
    await rig.work()


NAMES = [f"{ANN}-f{n}" for n in range(1, 7)]


async def picture(face: Face, user: str = ANN) -> dict[str, Any]:
    """Every answer that tells of a user, without what each reading changes."""
    shown: dict[str, Any] = {}
    for session in (f"{user}-s1", f"{user}-s2"):
        shown[session] = await face.ok("GET", f"/v1/working-memory/{session}", params={"user_id": user})
    for name in [one.replace(ANN, user) for one in NAMES]:
        for part in ("", "/history", "/evidence"):
            answer = await face.http.get(f"/v1/long-term-memory/{name}{part}")
            shown[name + part] = [answer.status_code, answer.json()]
    where = {"user_id": {"eq": user}, "limit": 50, "recency_boost": False}
    for text in ("", "lessons on Tuesday", "yes, the trombone of my aunt"):
        shown[f"search {text}"] = await face.ok("POST", "/v1/long-term-memory/search", json=where | {"text": text})
        found = await face.ok("POST", "/v1/long-term-memory/search", json=where | {"text": text, "history": True})
        # Versions of one memory were created at one time, and have no order among themselves there.
        shown[f"history {text}"] = sorted(map(json.dumps, map(_plain, found["memories"])))
    asked = {"query": "lessons", "session": {"session_id": f"{user}-s1", "user_id": user}, "long_term_search": {"recency_boost": False}}
    shown["prompt"] = await face.ok("POST", "/v1/memory/prompt", json=asked)
    shown["changes"] = await face.ok("GET", "/v1/changes", params={"user_id": user})
    shown["rules"] = await face.ok("GET", "/v1/extraction-rules", params={"user_id": user})
    for view in await face.ok("GET", "/v1/summary-views"):
        shown["view" + view["id"]] = await face.ok("GET", f"/v1/summary-views/{view['id']}/partitions", params={"user_id": user})
    return _plain(shown)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items() if name not in ("access_count", "last_accessed", "score", "dist")}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name, value in wanted.items():
        assert found[name] == value, name


async def test_what_was_exported_and_erased_comes_back_as_it_was(face: Face) -> None:
    await fill(face, ANN, "trombone")
    await fill(face, BOB, "zither")
    before, other = await picture(face), await picture(face, BOB)
    lines = await face.lines()
    assert b"zither" not in b"".join(lines)
    assert BOB.encode() not in b"".join(lines)
    kinds = {json.loads(line)["kind"] for line in lines}
    assert kinds == {"header", "rules", "memory", "change", "session", "summary", "end"}
    receipt = await face.ok("GET", f"/v1/operations/{json.loads(lines[0])['operation_id']}")
    assert (receipt["state"], receipt["user_id"], receipt["stages"]["session"]) == ("done", None, 2)
    await face.erase(ANN)
    assert (await face.http.get(f"/v1/long-term-memory/{ANN}-f1")).status_code == 404

    report = await face.client.import_user(ANN, lines)
    assert (report.problems, report.complete, report.vectors_to_embed) == ([], True, 0)
    assert await face.rig.marks(DueKind.MEMORY) == {}, "every vector was reused"
    await face.rig.work()
    same(await picture(face), before)
    keys = await face.rig.raw_keys()
    again = await face.client.import_user(ANN, lines)
    assert (again.problems, again.imported) == ([], {})
    assert sum(again.present.values()) == sum(report.imported.values())
    await face.rig.work()
    same(await picture(face), before)
    same(await picture(face, BOB), other)
    assert {key for key in await face.rig.raw_keys() if not key.startswith("xo:")} == {key for key in keys if not key.startswith("xo:")}

    # What was changed before can be undone after.
    changes = (await face.ok("GET", "/v1/changes", params={"user_id": ANN, "kind": "supersede"}))["changes"]
    await face.ok("POST", f"/v1/changes/{changes[0]['id']}/undo")
    assert "valid_to" not in await face.ok("GET", f"/v1/long-term-memory/{ANN}-f2")
    forgotten = (await face.ok("GET", "/v1/changes", params={"user_id": ANN, "kind": "forget"}))["changes"][0]
    await face.ok("POST", f"/v1/changes/{forgotten['id']}/undo")
    assert (await face.ok("GET", f"/v1/long-term-memory/{ANN}-f7"))["text"] == "hums like a trombone"
