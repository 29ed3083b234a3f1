"""Test that Mem0's paths keep users, tokens and namespaces separate for any request."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from agent_memory.foundation.core.scope import Principal
from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime
from tests.compat.callers import ANNA, BOB, ELSEWHERE, ONE_AGENT, OWNER, READER, STRANGER, Callers
from tests.support.stack import working


@pytest.fixture(scope="module")
async def callers(redis_url: str) -> AsyncGenerator[Callers]:
    settings = load_settings(KEY_PREFIX="mem0-isolation", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", COMPAT_APIS="mem0")
    async with open_runtime(settings, redis_url) as runtime, working(runtime):
        yield Callers(create_app(settings, runtime))


async def store(client: httpx.AsyncClient, text: str, **whose: Any) -> httpx.Response:
    body = {"messages": [{"role": "user", "content": text}], "infer": False, **whose}
    return await client.post("/v3/memories/add/", json=body)


async def memory_of(client: httpx.AsyncClient, text: str, **whose: Any) -> str:
    return (await store(client, text, **whose)).json()["results"][0]["id"]


async def listed(client: httpx.AsyncClient, filters: dict[str, Any]) -> list[str]:
    answer = await client.post("/v3/memories/", json={"filters": filters})
    assert answer.status_code == 200, answer.text
    return [memory["memory"] for memory in answer.json()["results"]]


@pytest.mark.parametrize("other", [BOB, STRANGER], ids=["another user's token", "another tenant's"])
async def test_memory_of_another_user_cannot_be_reached_by_id(callers: Callers, other: Principal) -> None:
    memory = await memory_of(callers(ANNA), "Anna keeps a secret", user_id="anna")
    client = callers(other)
    path = f"/v1/memories/{memory}/"
    assert (await client.get(path)).status_code == 404
    assert (await client.put(path, json={"text": "changed"})).status_code == 404
    assert (await client.delete(path)).status_code == 404
    assert (await client.get(f"{path}history/")).status_code == 404
    assert (await client.request("DELETE", "/v1/batch/", json={"memories": [{"memory_id": memory}]})).status_code == 404
    assert (await client.put("/v1/batch/", json={"memories": [{"memory_id": memory, "text": "changed"}]})).status_code == 404
    assert (await callers(ANNA).get(path)).json()["memory"] == "Anna keeps a secret"


@pytest.mark.parametrize(
    "filters",
    [
        {"run_id": "*"},
        {"user_id": "*"},
        {"OR": [{"user_id": "*"}, {"user_id": "carla"}]},
        {"NOT": [{"user_id": "bob"}]},
        {"user_id": {"ne": "bob"}},
        {"user_id": {"in": ["carla", "*"]}},
        {"app_id": {"ne": "x"}},
    ],
)
async def test_filters_cannot_widen_the_scope_of_a_token(callers: Callers, filters: dict[str, Any]) -> None:
    await memory_of(callers(OWNER), "Carla trains at dawn", user_id="carla")
    await memory_of(callers(BOB), "Bob trains at noon", user_id="bob")
    assert "Carla trains at dawn" not in await listed(callers(BOB), filters)
    answer = await callers(BOB).post("/v3/memories/search/", json={"query": "Carla trains at dawn", "filters": filters})
    assert "Carla" not in answer.text


async def test_delete_all_deletes_only_within_the_callers_scope(callers: Callers) -> None:
    await memory_of(callers(OWNER), "Dora swims", user_id="dora")
    answer = await callers(BOB).delete("/v1/memories/", params={"user_id": "dora"})
    assert answer.status_code in (200, 403)
    assert await listed(callers(OWNER), {"user_id": "dora"}) == ["Dora swims"]
    assert (await callers(OWNER).delete("/v1/memories/")).status_code == 400
    assert (await callers(OWNER).delete("/v1/memories/", params={"user_id": "dora", "app_id": "x"})).status_code == 200
    assert await listed(callers(OWNER), {"user_id": "dora"}) == ["Dora swims"]
    assert (await callers(OWNER).delete("/v1/memories/", params={"user_id": "dora", "app": "x"})).status_code == 501
    assert await listed(callers(OWNER), {"user_id": "dora"}) == ["Dora swims"]


async def test_memories_outside_the_mem0_namespace_are_invisible(callers: Callers) -> None:
    memories = [{"id": "ours-1", "text": "A fact of our own", "user_id": "erik"}]
    assert (await callers(OWNER).post("/v1/long-term-memory/", json={"memories": memories})).status_code == 200
    assert await listed(callers(OWNER), {"user_id": "erik"}) == []
    assert (await callers(OWNER).get("/v1/memories/ours-1/")).status_code == 404
    assert (await callers(OWNER).delete("/v1/memories/", params={"user_id": "erik"})).status_code == 200
    assert (await callers(OWNER).get("/v1/long-term-memory/ours-1")).status_code == 200


async def test_a_token_without_the_namespace_is_refused(callers: Callers) -> None:
    for path in ("/v1/ping/", "/v1/memories/", "/v1/entities/"):
        assert (await callers(ELSEWHERE).get(path)).status_code == 403


async def test_read_only_token_cannot_change_anything(callers: Callers) -> None:
    memory = await memory_of(callers(OWNER), "Finn rows", user_id="finn")
    reader = callers(READER)
    assert (await store(reader, "x", user_id="finn")).status_code == 403
    assert (await reader.post("/v3/memories/add/", json={"messages": [{"content": "x"}], "user_id": "finn"})).status_code == 403
    assert (await reader.put(f"/v1/memories/{memory}/", json={"text": "x"})).status_code == 403
    assert (await reader.delete(f"/v1/memories/{memory}/")).status_code == 403
    assert (await reader.delete("/v1/memories/", params={"user_id": "finn"})).status_code == 403
    project = "/api/v1/orgs/organizations/default/projects/mem0/"
    assert (await reader.patch(project, json={"custom_instructions": "x"})).status_code == 403
    assert (await reader.get(f"/v1/memories/{memory}/")).status_code == 200


async def test_agent_token_cannot_write_for_another_agent(callers: Callers) -> None:
    body = {"messages": [{"role": "user", "content": "I like hills"}], "user_id": "gina"}
    for infer in (True, False):
        answer = await callers(ONE_AGENT).post("/v3/memories/add/", json={**body, "agent_id": "other", "infer": infer})
        assert answer.status_code == 403, answer.text


@pytest.mark.parametrize(
    ("filters", "status"),
    [
        ({"AND": {"AND": {"AND": {"AND": {"AND": {"AND": {"AND": {"AND": {"AND": {"AND": {"user_id": "x"}}}}}}}}}}}, 400),
        ({"AND": [{"user_id": f"u{n}"} for n in range(200)]}, 400),
        ({"user_id": {"eq": "x) | (@u:*"}}, 200),
        ({"metadata": {"a}|{b": "*"}}, 200),
        ({"metadata": {"k": {"$ne": 1}}}, 501),
        ({"memory_ids": ["x"]}, 200),
        ({"user_id": ["x"]}, 200),
        ({"user_id": None}, 501),
        ({"NOT": [{"user_id": "*"}]}, 200),
        ({"AND": [{"user_id": "nobody"}, {"NOT": [{"run_id": "*"}]}]}, 200),
        ({"AND": []}, 400),
        ({"categories": {"in": []}}, 400),
        ("user_id", 400),
        ([], 400),
    ],
)
async def test_hostile_filters_match_nothing_or_are_rejected(callers: Callers, filters: Any, status: int) -> None:
    await memory_of(callers(OWNER), "Hanna climbs", user_id="hanna")
    for path, body in (("/v3/memories/", {}), ("/v3/memories/search/", {"query": "climbs"}), ("/v2/memories/search/", {"query": "climbs"})):
        answer = await callers(OWNER).post(path, json={**body, "filters": filters})
        assert answer.status_code == status, answer.text
        assert "Hanna" not in answer.text


@pytest.mark.parametrize("memory_id", ["%00", "..%2F..", "%0A", "x" * 5000, "*", "%F0%9F%98%80"])
async def test_forged_ids_get_400_or_404(callers: Callers, memory_id: str) -> None:
    for method in ("GET", "DELETE"):
        assert (await callers(OWNER).request(method, f"/v1/memories/{memory_id}/")).status_code in (400, 404)


async def test_errors_have_the_shape_of_mem0(callers: Callers) -> None:
    for answer in (
        await callers(OWNER).post("/v3/memories/add/", content=b"{", headers={"content-type": "application/json"}),
        await callers(OWNER).post("/v3/memories/add/", json={"messages": [{"content": "x"}]}),
        await callers(OWNER).post("/v3/memories/add/", json={"messages": [], "user_id": "x"}),
        await callers(OWNER).post("/v3/memories/add/", json={"messages": [{"content": "x"}], "user_id": "x", "immutable": True}),
        await callers(OWNER).post("/v1/exports/", json={}),
    ):
        assert answer.status_code in (400, 501)
        assert isinstance(answer.json()["detail"], str)
