"""Test that a full process rejects new requests with `Retry-After` but completes admitted ones."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from typing import Any

import httpx
import pytest

from agent_memory.foundation.api.responses import LEAVE
from agent_memory.foundation.core.settings import Settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.interfaces.http.middleware.admission import TENANT, AdaptiveLimit, AdmissionMiddleware
from agent_memory.interfaces.http.middleware.body_deadline import BODY_ARRIVING
from agent_memory_client.models import AppendMessagesResponse
from tests.support.api import Recorded, serving
from tests.support.rig import gathered
from tests.support.waiting import wait_until

_MOST = 4
_BODY = {"messages": [{"role": "user", "content": "hello", "created_at": "2026-01-02T03:04:05Z"}]}


class Gate:
    """A fake service call that waits until the gate opens, and counts its callers."""

    def __init__(self) -> None:
        self.entered = 0
        self.inside = 0
        self.open = asyncio.Event()

    async def __call__(self) -> Any:
        self.entered += 1
        self.inside += 1
        try:
            await self.open.wait()
        finally:
            self.inside -= 1
        return AppendMessagesResponse(session_id="s1", appended=1, total_messages=1, tokens=3, version=7), []


@pytest.fixture
async def gated(make_settings: Callable[..., Settings]) -> AsyncGenerator[tuple[httpx.AsyncClient, Gate, Recorded]]:
    """Provide an API that admits four requests, which wait for the gate."""
    gate, recorded = Gate(), Recorded()
    recorded.answers["working.append_messages"] = lambda: gate()
    app = create_app(make_settings(MAX_CONCURRENT_REQUESTS=_MOST), recorded.runtime)
    async with serving(app) as url, httpx.AsyncClient(base_url=url, timeout=30) as http:
        yield http, gate, recorded
        gate.open.set()


async def test_requests_beyond_capacity_are_refused_until_admitted_ones_finish(gated: Any) -> None:
    http, gate, _ = gated
    answers: Counter[int] = Counter()

    async def one() -> httpx.Response:
        response = await http.post("/v1/working-memory/s1/messages", json=_BODY)
        answers[response.status_code] += 1
        return response

    async def refused() -> bool:
        return answers[503] == 20 - _MOST

    asked = [asyncio.create_task(one()) for _ in range(20)]
    # The gate is closed: any response now did not wait for the admitted requests.
    await wait_until(refused, "sixteen refusals while four are under way")
    assert (gate.inside, gate.entered, answers[200]) == (_MOST, _MOST, 0)
    for path in ("/v1/health", "/v1/ready", "/metrics", "/v1/health/"):
        watched = await http.get(path)
        assert watched.status_code == 200, "who watches the server sees it when it is full"
    assert (await http.get("/v1/working-memory/sse")).status_code == 503, "a session may have the name of a stream"
    metrics = (await http.get("/metrics")).text
    assert f"agent_memory_http_in_flight {_MOST}.0" in metrics
    gate.open.set()
    responses = [await task for task in asked]
    assert answers == {200: _MOST, 503: 20 - _MOST}
    for response in responses:
        if response.status_code == 503:
            assert response.json()["code"] == "overloaded"
            assert int(response.headers["retry-after"]) >= 1
            assert response.headers["x-request-id"]
    assert [(await one()).status_code for _ in range(2 * _MOST)] == [200] * (2 * _MOST)
    assert gate.entered == 3 * _MOST


async def test_disconnected_and_failed_requests_free_their_slot(gated: Any) -> None:
    http, gate, recorded = gated

    async def impatient() -> None:
        with pytest.raises(httpx.TimeoutException):
            await http.post("/v1/working-memory/s1/messages", json=_BODY, timeout=0.2)

    await gathered(impatient() for _ in range(_MOST))
    gate.open.set()

    async def has_room() -> bool:
        return (await http.post("/v1/working-memory/s1/messages", json=_BODY)).status_code == 200

    await wait_until(has_room, "room after the hang-ups")
    recorded.answers["working.append_messages"] = RuntimeError("broken")
    assert {(await http.post("/v1/working-memory/s1/messages", json=_BODY)).status_code for _ in range(3 * _MOST)} == {500}
    recorded.answers["working.append_messages"] = lambda: gate()
    assert await has_room()


def _beats(limit: AdaptiveLimit, late: float, seconds: float, under_way: int, begin: float) -> float:
    """Report `late` at every beat for `seconds`, and return the end time."""
    for beat in range(round(seconds * 100)):
        limit.beat(late, begin + beat / 100, under_way)
    return begin + seconds


def test_adaptive_limit_shrinks_while_the_loop_is_late_then_recovers() -> None:
    limit = AdaptiveLimit(256)
    assert limit.requests == 128
    now = _beats(limit, 0.001, 10.0, 256, 0.0)
    assert limit.requests == 256
    now = _beats(limit, 0.5, 0.01, 200, now)
    now = _beats(limit, 0.001, 1.0, 200, now)
    assert limit.requests == 256, "one pause is nothing"
    for _ in range(20):
        now = _beats(limit, 0.5, 0.15, 200, now)
        now = _beats(limit, 0.001, 0.01, 200, now)
    assert limit.requests == 256, "nor are bursts with rests between them"
    now = _beats(limit, 0.05, 0.21, 200, now)
    assert 130 <= limit.requests <= 140, "what is under way counts, not what might be"
    now = _beats(limit, 0.05, 5.0, 200, now)
    assert limit.requests == 16, "never below what is served in a moment"
    now = _beats(limit, 0.001, 5.0, 3, now)
    assert limit.requests == 16, "what nobody asks for does not grow"
    now = _beats(limit, 0.001, 0.2, 16, now)
    assert 17 <= limit.requests < 256
    _beats(limit, 0.001, 20.0, 256, now)
    assert limit.requests == 256


def test_small_limit_does_not_shrink() -> None:
    limit = AdaptiveLimit(4)
    _beats(limit, 0.5, 5.0, 4, 0.0)
    assert limit.requests == 4


async def test_requests_queue_while_the_loop_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two requests run, six wait, and the rest fail. A disconnected client leaves the queue."""
    monkeypatch.setattr(AdaptiveLimit, "requests", 2)
    opened, inside, sent = asyncio.Event(), 0, Counter[int]()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        nonlocal inside
        inside += 1
        await opened.wait()
        inside -= 1
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            sent[message["status"]] += 1

    async def receive() -> Any:
        return {"type": "http.request"}

    admission = AdmissionMiddleware(slow, most=8)
    asked = [asyncio.ensure_future(admission({"type": "http", "path": "/v1/x", "headers": []}, receive, send)) for _ in range(10)]

    async def settled() -> bool:
        return inside == 2 and sent[503] == 2

    await wait_until(settled, "two inside, two refused")
    asked[4].cancel()
    opened.set()
    ended = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(one) for one in ended if one is not None] == [asyncio.CancelledError]
    assert sent == {200: 7, 503: 2}
    sent.clear()
    await gathered(admission({"type": "http", "path": "/v1/x", "headers": []}, receive, send) for _ in range(2))
    assert sent == {200: 2}, "no place was lost"


async def test_flood_of_one_tenant_does_not_block_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AdaptiveLimit, "requests", 8)
    inside, sent = Counter[str](), dict[str, Counter[int]](loud=Counter(), quiet=Counter(), other=Counter())
    gates = {name: asyncio.Event() for name in sent}

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        inside[scope[TENANT]] += 1
        await gates[scope[TENANT]].wait()
        inside[scope[TENANT]] -= 1
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Any:
        return {"type": "http.request"}

    admission = AdmissionMiddleware(slow, most=32, fair=True)

    def ask(tenant: str) -> asyncio.Future[None]:
        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                sent[tenant][message["status"]] += 1

        return asyncio.ensure_future(admission({"type": "http", "path": "/v1/x", "headers": [], TENANT: tenant}, receive, send))

    flood = [ask("loud") for _ in range(100)]

    async def full() -> bool:
        return sent["loud"][503] == 100 - 32 and inside["loud"] == 7

    await wait_until(full, "seven of eight places are taken, and the line is full")
    quiet = [ask("quiet") for _ in range(3)]

    async def begun() -> bool:
        return inside["quiet"] == 1

    await wait_until(begun, "the eighth place is the quiet one's")
    assert not sent["quiet"], "and nobody refuses it"

    async def pushed_out() -> bool:
        return sent["loud"][503] == 100 - 32 + 3

    await wait_until(pushed_out, "room in line was made by the loud one")
    gates["quiet"].set()
    await asyncio.gather(*quiet)
    assert sent["quiet"] == {200: 3}, "while nothing of the flood was answered"
    assert sent["loud"][200] == 0
    gates["loud"].set()
    await asyncio.gather(*flood)
    assert sent["loud"] == {200: 29, 503: 71}


async def test_model_calls_wait_in_a_separate_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """A burst of 1,000 streams delays neither other requests nor large bodies."""
    monkeypatch.setattr(AdaptiveLimit, "requests", 8)
    opened, streaming, sent = asyncio.Event(), 0, Counter[int]()
    admission: AdmissionMiddleware

    async def stream(scope: Any, receive: Any, send: Any) -> None:
        nonlocal streaming
        await asyncio.sleep(0)
        scope[LEAVE]()
        streaming += 1
        await opened.wait()
        streaming -= 1
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            sent[message["status"]] += 1

    async def receive() -> Any:
        return {"type": "http.request"}

    def ask(path: str, **more: Any) -> asyncio.Future[None]:
        return asyncio.ensure_future(admission({"type": "http", "path": path, "headers": [], **more}, receive, send))

    admission = AdmissionMiddleware(stream, most=8, calls=("/proxy/",), most_calls=2048)
    asked = [ask("/proxy/v1/chat/completions") for _ in range(1000)]
    other = ask("/v1/x")

    async def all_stream() -> bool:
        return streaming == 1001

    await wait_until(all_stream, "a thousand streams at a time, and another request")
    large = [ask("/proxy/v1/responses", **{BODY_ARRIVING: True})]

    async def begun() -> bool:
        return streaming == 1001 + len(large)

    for _ in range(10):
        await wait_until(begun, "a call with a large body streams")
        large.append(ask("/proxy/v1/responses", **{BODY_ARRIVING: True}))
    await wait_until(begun, "the last large one")
    assert not sent
    opened.set()
    await asyncio.gather(*asked, other, *large)
    assert sent == {200: 1012}
