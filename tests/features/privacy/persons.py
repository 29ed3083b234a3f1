"""Create, read and compare users with all kinds of data, for export, import and erasure tests."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from agent_memory.features.jobs.erasure_orders import Erasure, ErasureOrders
from agent_memory.features.memories.commit import ChangeOrigin, MemoryCommits
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.interfaces.http.app import create_app
from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from agent_memory_client.models import MemoryRecord, MemoryTypeEnum
from agent_memory_worker.privacy.erase import erase
from tests.registrations import registrations
from tests.support.rig import SCOPE, Rig, record
from tests.support.timelines import close_periods, stored_bytes

ANN, BOB = "ann", "bob"
OLD = datetime(2024, 5, 1, 12, tzinfo=UTC)


@dataclass
class Face:
    """A rig, its API and a client."""

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
        mark = await self.rig.rt[ErasureOrders].order_erasure(SCOPE, Erasure(SCOPE.tenant, None, user, None))
        await erase(self.rig.rt, mark.member)
        await self.rig.work(DueKind.DELETION)


@asynccontextmanager
async def faced(rig: Rig) -> AsyncGenerator[Face]:
    transport = httpx.ASGITransport(create_app(rig.settings, rig.rt))
    config = MemoryClientConfig(base_url="http://127.0.0.1")
    async with (
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http,
        MemoryAPIClient(config, transport=transport) as client,
    ):
        yield Face(rig, http, client)


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
    """Store all kinds of data for a user, such as sessions, facts, evidence and rules."""
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
    await rig.rt[MemoryService].store(SCOPE, facts)
    await rig.work()
    await face.ok("PATCH", f"/v1/long-term-memory/{user}-f1", json={"text": f"{word} lessons on Tuesday"})
    # A repetition becomes evidence and an alias; another fact of the slot ends the first.
    await rig.rt[MemoryService].store(SCOPE, [fact("f5", f"sold the {word} in May", memory_type=MemoryTypeEnum.EPISODIC, event_date=made)])
    await rig.rt[MemoryService].store(SCOPE, [fact("f6", f"lives by the {word} shop", created_at=made + timedelta(days=9), slot="home")])
    await rig.rt[MemoryService].store(SCOPE, [fact("f7", f"hums like a {word}")])
    found = (await rig.rt[MemoryStore].find(SCOPE, [f"{user}-f7"]))[0]
    assert found is not None
    assert await rig.rt[MemoryCommits].forget_memories(SCOPE, [found], ChangeOrigin("test", "for this test"), batch="b1")
    await face.ok("PUT", "/v1/extraction-rules", params={"user_id": user}, json={"instructions": f"mind the {word}"})
    for one in registrations():
        await one.fill_person(face.ok, user)
    await know(face, user, word)
    await settle(face)
    summaries = [line for line in (await stored_bytes(rig)).split("\n") if line.partition(" ")[0].endswith(":s")]
    assert f"sold the {word}" in str(summaries), "the summaries of her timeline are there"


async def know(face: Face, user: str, word: str) -> None:
    """Store a user's data other than memories, such as blocks, procedures and items."""
    where = {"user_id": user, "namespace": "home"}
    # Events of several days, and of the current day.
    lasts = record(f"was in Rome with the {word} from 3 May to 9 June 2023", f"{user}-f8", memory_type=MemoryTypeEnum.EPISODIC, **where)
    ahead = record(f"gives the {word} away", f"{user}-f9", event_date=datetime.now(UTC) + timedelta(days=40), **where)
    await face.rig.rt[MemoryService].store(SCOPE, [lasts, ahead])
    # A recurring fact is static until it is not repeated for a long time.
    for days in (6, 4, 2):
        again = record("practises at noon", f"{user}-r{days}", created_at=datetime.now(UTC) - timedelta(days=days), **where)
        await face.rig.rt[MemoryService].store(SCOPE, [again])
    await face.ok("PUT", "/v1/blocks/human", params=where, json={"value": f"plays the {word}", "description": "Who it is."})
    await face.ok("PATCH", "/v1/blocks/human", params=where, json={"operation": "append", "content": f"and no other than the {word}"})
    await face.ok("POST", "/v1/blocks/human/attach", params=where, json={"user_id": user, "agent_id": "coach"})
    procedure = {"when_to_use": f"The {word} is out of tune", "steps": [f"Warm the {word}"], **where}
    made = (await face.ok("POST", "/v1/procedures", json=procedure))["id"]
    await face.ok("PATCH", f"/v1/procedures/{made}", json={"pitfalls": [f"A cold {word}"]})
    await face.ok("POST", f"/v1/procedures/{made}/feedback", json={"helped": True, "comment": f"the {word} sounds"})
    await face.ok("POST", "/v1/tools/memory", json={"tool": "tune", "arguments": {"what": word}, **where})
    result = {"result": "success", "comment": f"the {word} is sold"}
    await face.ok("PATCH", f"/v1/working-memory/{user}-s1/result", params=where, json=result)
    for key, more in (("kept", {}), ("lent", {"ttl_minutes": 600})):
        await face.ok("PUT", "/v1/items", params=where, json={"path": ["things"], "key": key, "value": {"what": word}, **more})


NAMES = [f"{ANN}-f{n}" for n in range(1, 7)]


async def picture(face: Face, user: str = ANN) -> dict[str, Any]:
    """Return every response with a user's data, excluding fields that change on reads."""
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
        # Versions of one memory have the same creation time there, and thus no order.
        shown[f"history {text}"] = sorted(map(json.dumps, map(_plain, found["memories"])))
    asked = {"query": "lessons", "session": {"session_id": f"{user}-s1", "user_id": user}, "long_term_search": {"recency_boost": False}}
    shown["prompt"] = await face.ok("POST", "/v1/memory/prompt", json=asked)
    timeline = await face.ok("GET", "/v1/timeline", params={"user_id": user, "namespace": "home", "granularity": "month"})
    shown["timeline"] = [(period["name"], period["state"], (period["summary"] or {}).get("text")) for period in timeline["periods"]]
    mine = {"user_id": user, "namespace": "home"}
    profile = await face.ok("GET", "/v1/profile", params=mine)
    shown["profile"] = {name: profile[name] for name in ("static", "dynamic", "slots")}
    for path in ("blocks", "blocks/human/history", "procedures", "tools/memory", f"session-results/{user}-s1"):
        shown[path] = await face.ok("GET", f"/v1/{path}", params=mine)
    shown[f"session-results/{user}-s1"].pop("procedure_id", None)  # An imported session names no procedure.
    for one in shown["procedures"]["procedures"]:
        shown[one["id"]] = await face.ok("GET", f"/v1/procedures/{one['id']}/history")
    shown["items"] = sorted(map(json.dumps, (await face.ok("POST", "/v1/items/search", params=mine, json={}))["items"]))
    shown["changes"] = await face.ok("GET", "/v1/changes", params={"user_id": user})
    shown["rules"] = await face.ok("GET", "/v1/extraction-rules", params={"user_id": user})
    for one in registrations():
        shown |= await one.show_person(face.ok, user)
    return _plain(shown)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items() if name not in ("access_count", "last_accessed", "score", "dist")}
    return [_plain(one) for one in value] if isinstance(value, list) else value


async def stored_keys(face: Face) -> set[str]:
    """Return all keys except receipts and background usage counts."""
    return {key for key in await face.rig.raw_keys() if not key.startswith(("xo:", "use"))}


async def settle(face: Face) -> None:
    """Run all due work and followers, so that tests can compare key snapshots."""
    await face.rig.work()
    await face.rig.make_due(DueKind.FOLLOW)
    await face.rig.work()
    await close_periods(face.rig)


def same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name, value in wanted.items():
        assert found[name] == value, name
