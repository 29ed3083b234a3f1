"""Test that the server rejects a tenant over its limit before reading the request (row S7).

This needs no call to Redis and does not affect other tenants.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from agent_memory.features.access.credentials import Authenticator
from agent_memory.features.access.limits import LimitStore, RequestLimit
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.errors import TooMany
from agent_memory.foundation.core.settings import LimitSettings
from agent_memory.interfaces.http.app import create_app
from agent_memory.interfaces.http.middleware.rate_limit import RateLimitMiddleware
from agent_memory.interfaces.http.middleware.request_cost import BODY_UNIT
from tests.support.commands import commands_of
from tests.support.rig import SCOPE, MakeRig, Rig

_ADMIN = "the-operator-of-this-server"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def _limit(rig: Rig, clock: Clock, burst: int) -> RequestLimit:
    """Return a limit whose bucket barely refills."""
    settings = LimitSettings.model_validate({"requests_per_minute": 1, "requests_burst": burst})
    return RequestLimit(settings, LimitStore(rig.rt.client, rig.keys), clock)


async def _seconds_to_wait(limit: RequestLimit, tenant: str, cost: int = 1) -> int:
    """Request `cost` permits. Return 0 if admitted, or else the number of seconds to wait."""
    try:
        await limit.admit(tenant, cost)
    except TooMany as refused:
        return refused.retry_after
    return 0


async def test_cached_refusal_applies_to_its_tenant_only_and_for_one_second(rig: Rig) -> None:
    clock = Clock()
    limit = _limit(rig, clock, 10)
    for _ in range(10):
        await limit.admit("busy")
    wait = await _seconds_to_wait(limit, "busy")
    assert wait
    assert await _seconds_to_wait(limit, "busy") == wait
    assert [await _seconds_to_wait(limit, other) for other in ("calm", "", "busy2", "Busy")] == [0] * 4
    await rig.rt.client.delete(rig.keys.rate("busy"))  # as if its limit had been raised
    assert await _seconds_to_wait(limit, "busy"), "this process has not asked yet"
    clock.now += 1.0
    assert await _seconds_to_wait(limit, "busy") == 0


async def test_cancelled_admission_blocks_no_later_request(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    limit = _limit(rig, clock, 1)
    await limit.admit("busy")
    assert await _seconds_to_wait(limit, "busy")
    clock.now += 1.0
    take, asked = LimitStore.take, asyncio.Event()

    async def never(*_: Any, **__: Any) -> Any:
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(LimitStore, "take", never)
    lost = asyncio.create_task(limit.admit("busy"))
    await asked.wait()
    assert limit.waiting("busy") == 1
    lost.cancel()
    await asyncio.wait({lost})
    assert limit.waiting("busy") == 0
    monkeypatch.setattr(LimitStore, "take", take)
    await rig.rt.client.delete(rig.keys.rate("busy"))
    assert await _seconds_to_wait(limit, "busy") == 0


async def test_permits_taken_in_advance_are_spent_without_redis_and_expire(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = LimitSettings.model_validate({"requests_per_minute": 6000, "requests_burst": 100})
    limit = RequestLimit(settings, LimitStore(rig.rt.client, rig.keys), clock := Clock())
    await limit.admit("busy")  # of the ten that it took
    sent = commands_of(rig, monkeypatch)
    for cost in (4, 4, 1):
        await limit.admit("busy", cost)
    assert sent == []
    await limit.admit("busy")
    assert sent, "it had no more in hand"
    sent.clear()
    clock.now += 1.0
    await limit.admit("busy")
    assert sent, "what was not used in a second is gone"


async def test_large_request_costs_several_permits_without_blocking_small_ones(rig: Rig) -> None:
    clock = Clock()
    limit = _limit(rig, clock, 10)
    await limit.admit("busy", 7)
    assert 61 <= await _seconds_to_wait(limit, "busy", 5) <= 120, "two more flow in in two minutes"
    assert await _seconds_to_wait(limit, "busy", 5)
    assert await _seconds_to_wait(limit, "busy", 9)
    for _ in range(3):
        await limit.admit("busy", 1)
    with pytest.raises(TooMany):
        await limit.admit("busy", 1)
    await rig.rt.client.delete(rig.keys.rate("busy"))
    clock.now += 1.0
    await limit.admit("busy", 1_000_000)  # no request costs more than the bucket's capacity


async def _tenants(http: httpx.AsyncClient, *names: str) -> dict[str, dict[str, str]]:
    made = {name: await http.post("/v1/auth/tokens", json={"tenant": name}, headers={"x-api-key": _ADMIN}) for name in names}
    return {name: {"x-api-key": answer.json()["token"]} for name, answer in made.items()}


def _http(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


async def test_refused_request_reads_no_body_and_sends_no_redis_command(make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"busy": {"requests_per_minute": 1, "requests_burst": 3}}
    async with make_rig(AUTH_MODE="token", AUTH_ADMIN_TOKEN=_ADMIN, LIMIT_TENANTS=own) as rig:
        app = create_app(rig.settings, rig.rt)
        for clocked in (rig.rt[Authenticator].gate, rig.rt[RequestLimit]):
            monkeypatch.setattr(clocked, "_clock", Clock())
        async with _http(app) as http:
            keys = await _tenants(http, "busy", "calm")
            statuses = [(await http.get("/v1/working-memory/", headers=keys["busy"])).status_code for _ in range(5)]
            assert statuses == [200] * 3 + [429] * 2
            assert (await http.get("/v1/working-memory/", headers=keys["calm"])).status_code == 200

            sent = commands_of(rig, monkeypatch)
            answers: list[Any] = []

            async def never() -> Any:
                raise AssertionError("the body was asked for")

            async def send(message: Any) -> None:
                answers.append(message)

            headers = [(b"x-api-key", keys["busy"]["x-api-key"].encode()), (b"content-length", b"1000000"), (b"host", b"localhost")]
            for path in ("/v1/long-term-memory/", "/v1/working-memory/s/messages", "/mcp", "/no/such/path"):
                scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": headers}
                await app({**scope, "scheme": "http", "root_path": "", "http_version": "1.1"}, never, send)
                start, body = answers[-2:]
                assert start["status"] == 429
                assert 1 <= int(dict(start["headers"])[b"retry-after"]) <= 240
                assert dict(start["headers"])[b"x-request-id"]
                assert json.loads(body["body"])["code"] == "too_many"
            assert sent == []

            assert (await http.get("/v1/working-memory/", headers=keys["calm"])).status_code == 200, "meanwhile"
            assert sent, "what is answered asks Redis"
            # Callers with no key, or a wrong one, do not get any tenant's refusal.
            assert (await http.get("/v1/working-memory/")).status_code == 401
            assert (await http.get("/v1/working-memory/", headers={"x-api-key": "am_wrong"})).status_code == 401


async def test_revoked_key_gets_401_instead_of_a_cached_refusal(make_rig: MakeRig) -> None:
    own = {"busy": {"requests_per_minute": 1, "requests_burst": 1}}
    async with (
        make_rig(AUTH_MODE="token", AUTH_ADMIN_TOKEN=_ADMIN, LIMIT_TENANTS=own) as rig,
        _http(create_app(rig.settings, rig.rt)) as http,
    ):
        made = await http.post("/v1/auth/tokens", json={"tenant": "busy"}, headers={"x-api-key": _ADMIN})
        key = {"x-api-key": made.json()["token"]}
        assert [(await http.get("/v1/working-memory/", headers=key)).status_code for _ in range(3)] == [200, 429, 429]
        assert (await http.delete(f"/v1/auth/tokens/{made.json()['id']}", headers={"x-api-key": _ADMIN})).status_code == 200
        assert (await http.get("/v1/working-memory/", headers=key)).status_code == 401


async def test_bodies_cost_permits_by_length_declared_or_streamed(make_rig: MakeRig) -> None:
    async with make_rig(LIMIT_REQUESTS_PER_MINUTE=1, LIMIT_REQUESTS_BURST=12) as rig, _http(create_app(rig.settings, rig.rt)) as http:
        body = json.dumps({"messages": [{"role": "user", "content": "so " * (BODY_UNIT // 3 * 4)}]}).encode()
        assert len(body) // BODY_UNIT == 4

        async def append(content: Any) -> int:
            sent = await http.post("/v1/working-memory/s/messages", content=content, headers={"content-type": "application/json"})
            return sent.status_code

        async def pieces() -> AsyncIterator[bytes]:
            for start in range(0, len(body), 1000):
                yield body[start : start + 1000]

        assert await append(body) == 200  # five of the twelve
        assert await append(pieces()) == 200  # and five more
        assert await append(body) == 429
        assert await append(pieces()) == 429, "refused while it is read"
        assert len((await rig.rt[SessionService].get(SCOPE, "s")).session.messages) == 2, "what was refused left nothing"


async def test_client_that_ignores_refusals_gets_delayed_ones(rig: Rig) -> None:
    """The first refusals per second are immediate, so that well-behaved clients lose no time."""
    limit, pauses, statuses = _limit(rig, Clock(), 1), list[float](), list[int]()
    await limit.admit("default")
    with pytest.raises(TooMany):
        await limit.admit("default")

    async def app(*_: Any) -> None:
        raise AssertionError("it was let in")

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def receive() -> Any:
        raise AssertionError("the body was asked for")

    middleware = RateLimitMiddleware(app, limit=lambda: limit, required=False, pause=pause)
    for _ in range(40):
        await middleware({"type": "http", "path": "/v1/x", "headers": []}, receive, send)
    assert statuses == [429] * 40
    assert 15 <= len(pauses) <= 25
    assert all(0 < seconds < 0.1 for seconds in pauses)
