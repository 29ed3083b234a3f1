"""Test load metrics: what processes count, who writes the totals, and who may read them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from agent_memory.features.jobs.load_sampler import LoadSampler, sampling
from agent_memory.features.jobs.load_store import LoadStore, begin_of
from agent_memory.features.memories.service import MemoryService
from agent_memory.foundation.core.metrics import MODEL_TOKENS, observe_request
from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import Runtime
from tests.support.rig import SCOPE, MakeRig, Rig, record
from tests.support.waiting import wait_until

ADMIN = "the-operators-own-key-of-these-tests"


@pytest.fixture
async def http(rig: Rig) -> AsyncGenerator[httpx.AsyncClient]:
    async with _client(rig.rt, rig.settings) as client:
        yield client


def _client(runtime: Runtime, settings: Any, **headers: str) -> httpx.AsyncClient:
    app = create_app(settings, runtime)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost", headers=headers)


def sampler_of(rig: Rig) -> LoadSampler:
    return LoadSampler(rig.rt.all, rig.rt[LoadStore])


async def points(http: httpx.AsyncClient, period: str = "hour") -> list[dict[str, Any]]:
    """Return the points that have values."""
    answer = await http.get("/v1/metrics/history", params={"period": period})
    assert answer.status_code == 200, answer.text
    return [point for point in answer.json()["points"] if point["requests"] is not None]


async def store_memory(http: httpx.AsyncClient, number: int, user: str | None) -> None:
    memory = {"id": f"m{number}", "text": f"Ada saw {number} birds.", **({"user_id": user} if user else {})}
    answer = await http.post("/v1/long-term-memory/", json={"memories": [memory], "deduplicate": False})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("period", ["hour", "day"])
async def test_history_has_totals_requests_times_and_tokens(rig: Rig, http: httpx.AsyncClient, period: str) -> None:
    sampler = sampler_of(rig)
    for number, user in enumerate(("ada", "ada", "ben", None)):
        await store_memory(http, number, user)
    await rig.append("s1", "hello")
    observe_request("GET", "/v1/slow", 500, 0.4)
    MODEL_TOKENS.inc(70)
    await sampler.sample()
    (point,) = await points(http, period)
    pending = sum(each.pending for each in (await rig.rt.backlog()).values())
    assert pending
    totals = {"memories": 4, "sessions": 1, "users": 2, "pending": pending, "dead": 0, "healthy": 1.0}
    assert {name: point[name] for name in totals} == totals
    assert (point["requests"], point["failed"], point["model_tokens"]) == (5, 1, 70)
    assert point["median_ms"] < 250 < point["p95_ms"] <= 500


async def test_counts_of_all_processes_are_summed_and_one_of_them_measures_the_totals(rig: Rig, http: httpx.AsyncClient) -> None:
    store = rig.rt[LoadStore]
    at = await store.now()
    assert [await store.own_minute(at, name) for name in ("first", "second", "first")] == [True, False, True]
    await store.add(at, {"requests": 3}, {60: {"memories": 7}})
    await store.add(at, {"requests": 4}, {})
    assert [(point["requests"], point["memories"]) for point in await points(http)] == [(7, 7)]


async def test_sample_counts_each_request_once_and_not_those_of_monitoring(rig: Rig, http: httpx.AsyncClient) -> None:
    sampler = sampler_of(rig)
    await http.get("/v1/health")
    await sampler.sample()
    await store_memory(http, 1, "ada")
    await sampler.sample()
    await http.get("/metrics")
    await sampler.sample()
    assert sum(point["requests"] for point in await points(http, "day")) == 1


async def test_stored_load_is_bounded_and_expires(rig: Rig, http: httpx.AsyncClient) -> None:
    store, now = rig.rt[LoadStore], await rig.rt[LoadStore].now()
    for minute in range(200):
        await store.add(now - 60 * minute, {"requests": 1}, {})
    keys = [key.decode() async for key in rig.rt.client.scan_iter(rig.keys.root + "load:*")]
    lifetimes = {key: await rig.rt.client.ttl(key) for key in keys}
    assert all(0 < left <= (7200 if ":load:60:" in key else 90_000) for key, left in lifetimes.items())
    hour, day = await store.read_history("hour"), await store.read_history("day")
    assert (len(hour.points), hour.step_seconds, len(day.points), day.step_seconds) == (60, 60, 144, 600)
    assert [point.requests for point in hour.points] == [1] * 60
    assert day.points[-1].at.timestamp() == begin_of(now, 600)
    assert await points(http, "hour")


async def test_process_samples_while_it_runs_and_at_its_end(rig: Rig, http: httpx.AsyncClient) -> None:
    async with sampling(rig.rt.all, rig.rt[LoadStore]):
        await wait_until(lambda: points(http), "the first sample")
        await store_memory(http, 1, "ada")
    assert sum(point["requests"] for point in await points(http, "day")) >= 1


async def test_unavailable_bucket_hides_neither_the_work_of_others_nor_the_requests(make_rig: MakeRig) -> None:
    async with make_rig(REDIS_BUCKETS=2) as rig, _client(rig.rt, rig.settings) as http:
        sampler, (home, other) = sampler_of(rig), rig.rt.all
        await home[MemoryService].store(SCOPE, [record("Ada saw a heron.")])
        await other.client.delete(other.keys.config)
        assert [problem.code for problem in await other.watch.look(fresh=True)] == ["store_lost"]
        assert (await http.get("/v1/ready")).status_code == 200
        assert 'outbox_pending{kind="memory"} 1.0' in (await http.get("/metrics")).text
        observe_request("GET", "/v1/slow", 200, 0.1)
        await sampler.sample()
        (point,) = await points(http)
        assert (point["requests"], point["healthy"], point["memories"]) == (1, 0.0, None)


async def test_only_operators_read_the_load(make_rig: MakeRig) -> None:
    async with make_rig(AUTH_MODE="token", AUTH_ADMIN_TOKEN=ADMIN) as rig:
        settings = load_settings(AUTH_MODE="token", AUTH_ADMIN_TOKEN=ADMIN)
        async with _client(rig.rt, settings) as http:
            operator = {"x-api-key": ADMIN}
            made = await http.post("/v1/auth/tokens", json={"description": "a test", "role": "admin", "tenant": "t"}, headers=operator)
            assert made.status_code == 200, made.text
            for headers, status in (({}, 401), ({"x-api-key": made.json()["token"]}, 403), (operator, 200)):
                assert (await http.get("/v1/metrics/history", headers=headers)).status_code == status
            assert (await http.get("/v1/metrics/history?period=year", headers=operator)).status_code == 422
