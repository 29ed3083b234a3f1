"""Whoever is over its limit is turned away at the door: nothing of its requests is read, Redis is not asked, and others are let in (S7)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from agent_memory.api.app import create_app
from agent_memory.api.limiting import BODY_UNIT
from agent_memory.api.turnstile import Turnstile
from agent_memory.errors import TooMany
from agent_memory.services.limits import RequestLimit
from agent_memory.settings import LimitSettings
from agent_memory.storage.limits import LimitStore
from tests.support.commands import commands_of
from tests.support.rig import SCOPE, MakeRig, Rig

_ADMIN = "the-operator-of-this-server"


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def _limit(rig: Rig, clock: Clock, burst: int) -> RequestLimit:
    """A bucket into which next to nothing flows."""
    settings = LimitSettings.model_validate({"requests_per_minute": 1, "requests_burst": burst})
    return RequestLimit(settings, LimitStore(rig.rt.client, rig.keys), clock)


async def test_a_verdict_is_its_tenants_alone_and_a_second_old_at_most(rig: Rig) -> None:
    clock = Clock()
    limit = _limit(rig, clock, 10)
    assert limit.known("busy") is None, "nothing is known of it yet"
    for _ in range(10):
        await limit.admit("busy")
    with pytest.raises(TooMany) as refused:
        await limit.admit("busy")
    assert limit.known("busy") == refused.value.retry_after
    assert [limit.known(other) for other in ("calm", "", "busy2", "Busy")] == [None] * 4
    await limit.admit("calm")
    await rig.rt.client.delete(rig.keys.rate("busy"))  # as if its limit had been raised
    assert limit.known("busy"), "this process has not asked yet"
    clock.now += 1.0
    assert limit.known("busy") is None, "one asks"
    assert limit.known("busy"), "and the others do not wait for its answer"
    await limit.admit("busy")
    assert limit.known("busy") is None, "the next one may ask at once"
    clock.now += 1.0
    assert [limit.known("busy") for _ in range(3)] == [None] * 3, "it is a tenant like others again"


async def test_one_that_asks_and_gets_lost_closes_no_door(rig: Rig) -> None:
    clock = Clock()
    limit = _limit(rig, clock, 1)
    await limit.admit("busy")
    with pytest.raises(TooMany):
        await limit.admit("busy")
    clock.now += 1.0
    assert [limit.known("busy") is None for _ in range(3)] == [True, False, False]
    clock.now += 1.0
    assert limit.known("busy") is None


async def test_what_a_process_has_in_hand_is_given_out_at_the_door(rig: Rig) -> None:
    settings = LimitSettings.model_validate({"requests_per_minute": 6000, "requests_burst": 100})
    limit = RequestLimit(settings, LimitStore(rig.rt.client, rig.keys), clock := Clock())
    await limit.admit("busy")  # of ten that it took
    assert [limit.known("busy", 4), limit.known("busy", 4), limit.known("busy", 4)] == [0, 0, None]
    assert limit.known("busy") == 0
    assert limit.known("busy") is None
    await limit.admit("busy")
    clock.now += 1.0
    assert limit.known("busy") is None, "what was not used in a second is gone"


async def test_a_large_request_counts_for_several_and_closes_no_door_to_small_ones(rig: Rig) -> None:
    clock = Clock()
    limit = _limit(rig, clock, 10)
    await limit.admit("busy", 7)
    with pytest.raises(TooMany) as refused:
        await limit.admit("busy", 5)
    assert 61 <= refused.value.retry_after <= 120, "two more flow in in two minutes"
    assert limit.known("busy", 5)
    assert limit.known("busy", 9)
    assert limit.known("busy", 4) is None
    for _ in range(3):
        assert limit.known("busy", 1) is None
        await limit.admit("busy", 1)
    with pytest.raises(TooMany):
        await limit.admit("busy", 1)
    await rig.rt.client.delete(rig.keys.rate("busy"))
    clock.now += 1.0
    await limit.admit("busy", 1_000_000)  # no request costs more than the bucket holds


async def _tenants(http: httpx.AsyncClient, *names: str) -> dict[str, dict[str, str]]:
    made = {name: await http.post("/v1/auth/tokens", json={"tenant": name}, headers={"x-api-key": _ADMIN}) for name in names}
    return {name: {"x-api-key": answer.json()["token"]} for name, answer in made.items()}


def _http(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


async def test_a_refusal_reads_nothing_and_asks_nobody(make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"busy": {"requests_per_minute": 1, "requests_burst": 3}}
    async with make_rig(AUTH_MODE="token", AUTH_ADMIN_TOKEN=_ADMIN, LIMIT_TENANTS=own) as rig:
        app = create_app(rig.settings, rig.rt)
        for clocked in (rig.rt.gate, rig.rt.request_limit):
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
            # Who shows no key, or a wrong one, gets no tenant's verdict.
            assert (await http.get("/v1/working-memory/")).status_code == 401
            assert (await http.get("/v1/working-memory/", headers={"x-api-key": "am_wrong"})).status_code == 401


async def test_a_key_that_is_trusted_no_longer_gets_no_verdict(make_rig: MakeRig) -> None:
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


async def test_bodies_are_paid_for_by_their_length_declared_or_not(make_rig: MakeRig) -> None:
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
        assert len((await rig.rt.working.get(SCOPE, "s")).session.messages) == 2, "what was refused left nothing"


async def test_who_does_not_listen_waits_for_its_refusals(rig: Rig) -> None:
    """The first refusals of a second come at once, so that a client that listens loses no time; the others are held for a moment."""
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

    door = Turnstile(app, gate=lambda: None, limit=lambda: limit, required=False, pause=pause)
    for _ in range(40):
        await door({"type": "http", "path": "/v1/x", "headers": []}, receive, send)
    assert statuses == [429] * 40
    assert 15 <= len(pauses) <= 25
    assert all(0 < seconds < 0.1 for seconds in pauses)
