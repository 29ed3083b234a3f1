"""Test compaction over HTTP. A worker runs it, and the response counts the remaining memories."""

from __future__ import annotations

import httpx
import pytest
from ulid import ULID

from agent_memory.features.jobs import operations
from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime

COMPACT = "/v1/long-term-memory/compact"


async def copies(client: httpx.AsyncClient, namespace: str, groups: int, each: int) -> None:
    memories = [
        {"id": f"{namespace}-{group}-{copy}", "text": f"Fact number {group}", "namespace": namespace}
        for group in range(groups)
        for copy in range(each)
    ]
    # Create copies on purpose: by default, the server merges the second one at once.
    body = {"memories": memories, "deduplicate": False}
    assert (await client.post("/v1/long-term-memory/", json=body)).status_code == 200


async def test_compact_endpoint_merges_copies_and_counts_the_remaining_memories(worked: httpx.AsyncClient) -> None:
    space, other = f"n-{ULID()}", f"n-{ULID()}"
    await copies(worked, space, 3, 4)
    await copies(worked, other, 1, 2)
    answer = await worked.post(COMPACT, params={"namespace": space})
    assert (answer.status_code, answer.json()) == (200, {"status": "ok, 3 memories remaining after compaction"})
    assert answer.headers["x-pending"] == "false"
    operation = (await worked.get(f"/v1/operations/{answer.headers['x-operation-id']}")).json()
    assert (operation["kind"], operation["state"], operation["namespace"]) == ("order", "done", space)
    again = await worked.post(COMPACT + "/", params={"namespace": space, "user_id": "nobody"})
    assert again.json() == {"status": "ok, 0 memories remaining after compaction"}
    kept = await worked.post("/v1/long-term-memory/search", json={"namespace": {"eq": other}})
    assert kept.json()["total"] == 2


async def test_compact_endpoint_accepts_hostile_namespace_names(worked: httpx.AsyncClient) -> None:
    for name in ('x"} | @t:{*', "a,b|c", "*", "-", "\u65e5\u672c"):
        await copies(worked, name, 1, 2)
        answer = await worked.post(COMPACT, params={"namespace": name})
        assert answer.json() == {"status": "ok, 1 memories remaining after compaction"}


async def test_compact_endpoint_reports_pending_without_a_worker(live: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "UNTOUCHED_SECONDS", 0.1)
    space = f"n-{ULID()}"
    await copies(live, space, 1, 2)
    answer = await live.post(COMPACT, params={"namespace": space})
    assert (answer.status_code, answer.json()) == (200, {"status": "ok, 2 memories remaining after compaction"})
    assert answer.headers["x-pending"] == "true"
    operation = (await live.get(f"/v1/operations/{answer.headers['x-operation-id']}")).json()
    assert operation["state"] == "pending"
    listed = (await live.get("/v1/operations", params={"kind": "order", "limit": 100})).json()["operations"]
    assert operation["id"] in [one["id"] for one in listed]


async def test_compact_is_refused_without_long_term_memory_but_forget_is_not(redis_url: str) -> None:
    settings = load_settings(KEY_PREFIX=f"t-{ULID()}", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", LONG_TERM_MEMORY=False)
    async with open_runtime(settings, redis_url) as runtime:
        transport = httpx.ASGITransport(create_app(settings, runtime))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            assert (await client.post(COMPACT)).status_code == 400
            answer = await client.post("/v1/long-term-memory/forget", json={"policy": {"budget": 0}})
            assert (answer.status_code, answer.json()["scanned"]) == (200, 0)
