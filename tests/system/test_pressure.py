"""Test a small connection pool, wrong clocks, and fifty concurrent writers (F11, F12, F13)."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from datetime import timedelta
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import httpx
import pytest
from docket import Disposition, ExponentialRetry, Worker

from agent_memory.features.sessions.service import SessionService
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.errors import ModelAnswerInvalid
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.interfaces.http.app import create_app
from agent_memory_worker import task_handlers
from agent_memory_worker.main import run_worker
from tests.support.api import serving
from tests.support.rig import SCOPE, MakeRig, gathered
from tests.support.waiting import wait_until
from tests.system.conftest import MakeChat, MakeProxied
from tests.system.faults.pictures import finished, waiting

pytestmark = pytest.mark.slow

_CLIENTS = 500


async def test_500_requests_on_few_connections_with_200_ms_latency_end_in_time(make_proxied: MakeProxied) -> None:
    limits = {"REDIS_POOL_SIZE": 16, "REQUEST_TIMEOUT_SECONDS": 5, "MAX_CONCURRENT_REQUESTS": 400}
    async with make_proxied(**limits) as (rig, proxy), serving(create_app(rig.settings, rig.rt)) as base_url:
        answers: Counter[str] = Counter()
        seconds: list[float] = []

        async def one(number: int) -> None:
            begun = time.monotonic()
            if number % 3 == 0:
                status, headers = await plain_post(base_url, "/v1/long-term-memory/search", {"text": "a house in Lisbon"})
            else:
                message = {"role": "user", "content": f"I bought house number {number}", "id": f"m{number}", "created_at": "2026-01-02"}
                status, headers = await plain_post(base_url, f"/v1/working-memory/s{number % 7}/messages", {"messages": [message]})
            seconds.append(time.monotonic() - begun)
            answers[status] += 1
            assert status == "200" or "retry-after" in headers

        proxy.delay = 0.1
        await gathered(one(number) for number in range(_CLIENTS))
        assert set(answers) <= {"200", "503"}, answers
        assert answers["200"] > 16, answers
        # The deadline of 5 s, and the cost of 500 clients and the server in this one process.
        assert max(seconds) < 10, f"{max(seconds):.1f} s"
        # The pool, the pool of searches, and the rig's own connections.
        assert proxy.open <= 2 * 16 + 2
        proxy.heal()
        after = Counter([(await plain_post(base_url, "/v1/long-term-memory/search", {"text": "house"}))[0] for _ in range(50)])
        assert set(after) == {"200"}
        pool = rig.rt.client.connection_pool

        # Background counters (readings, vectors) may be sent at the same time.
        async def given_back() -> bool:
            return not pool.busy

        await wait_until(given_back, "connections were not given back", 10)


async def test_dropped_packets_end_requests_at_the_deadline_without_connection_leaks(make_proxied: MakeProxied) -> None:
    limits = {"REDIS_POOL_SIZE": 8, "REDIS_COMMAND_TIMEOUT_SECONDS": 0.5, "REQUEST_TIMEOUT_SECONDS": 2}
    async with make_proxied(**limits) as (rig, proxy), serving(create_app(rig.settings, rig.rt)) as base_url:
        body = {"messages": [{"role": "user", "content": "hello there", "id": "m", "created_at": "2026-01-02"}]}
        assert (await plain_post(base_url, "/v1/working-memory/s/messages", body))[0] == "200"
        proxy.swallow = True
        answers = await gathered(plain_post(base_url, f"/v1/working-memory/s{number % 5}/messages", body) for number in range(60))
        assert {status for status, _ in answers} == {"503"}
        assert all("retry-after" in headers for _, headers in answers)
        proxy.heal()
        proxy.cut()
        pool = rig.rt.client.connection_pool

        async def served() -> bool:
            return (await plain_post(base_url, "/v1/working-memory/s/messages", body))[0] == "200"

        async def given_back() -> bool:
            return not pool.busy

        await wait_until(served, "an answer when packets flow again", 10)
        # A periodic task of the process may use a connection at this moment.
        await wait_until(given_back, "connections were not given back", 10)


async def plain_post(base_url: str, path: str, body: dict[str, Any]) -> tuple[str, str]:
    """Send a POST on a separate connection, and return the status and headers.

    httpx is too slow with this many connections.
    """
    content = json.dumps(body).encode()
    address = urlsplit(base_url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        "Connection: close",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
        "",
        "",
    ]
    writer.write("\r\n".join(lines).encode() + content)
    said = (await reader.read()).decode()
    writer.close()
    return said.split(" ", 2)[1], said.partition("\r\n\r\n")[0].lower()


async def test_aborted_requests_return_their_connections(make_proxied: MakeProxied) -> None:
    async with make_proxied(REDIS_POOL_SIZE=8) as (rig, proxy), serving(create_app(rig.settings, rig.rt)) as base_url:
        proxy.delay = 0.1
        async with httpx.AsyncClient(base_url=base_url, limits=httpx.Limits(max_connections=100)) as http:

            async def impatient(number: int) -> None:
                try:
                    await http.get(f"/v1/working-memory/s{number}", timeout=0.05)
                except httpx.TimeoutException:
                    return

            for _ in range(3):
                await gathered(impatient(number) for number in range(60))
            proxy.heal()

            async def answers() -> bool:
                return (await http.get("/v1/working-memory/", timeout=10)).status_code == 200

            await wait_until(answers, "an answer after the hang-ups", 20)
        pool = rig.rt.client.connection_pool

        async def all_back() -> bool:
            return not pool.busy

        await wait_until(all_back, "all connections back in the pool", 20)


async def test_order_ttl_and_leases_follow_the_redis_clock(make_rig: MakeRig) -> None:
    """Two processes with wrong clocks write to one session."""
    async with make_rig() as one, make_rig(KEY_PREFIX=one.settings.redis.key_prefix) as other:
        real = time.time
        for number in range(6):
            rig, skew = ((one, 3600.0), (other, -3600.0))[number % 2]
            with patch("time.time", lambda skew=skew: real() + skew):
                await rig.append("s", f"message {number}")
        assert await one.contents("s") == [f"message {number}" for number in range(6)]
        seconds, _ = await one.rt.client.time()
        with patch("time.time", lambda: real() + 3600):
            (claim,) = await one.claim(DueKind.SESSION, lease_seconds=5)
            (begun,) = await one.begin(DueKind.SESSION, [claim], lease_seconds=5)
        assert 4_000 <= begun.lease - seconds * 1000 <= 8_000
        with patch("time.time", lambda: real() - 3600):
            assert await other.claim(DueKind.SESSION) == [], "a clock that is behind takes nobody's work"
        with patch("time.time", lambda: real() + 3600):
            assert await other.claim(DueKind.SESSION) == [], "nor does one that is ahead"
        assert await one.rt.outbox.end_claim(DueKind.SESSION, begun)
        await finished(one)


async def test_retry_delay_follows_the_redis_clock_and_does_not_delay_new_work(make_rig: MakeRig) -> None:
    """A failed worker's wrong clock has no effect (docs/adr/0003)."""
    async with make_rig(WORKER_RETRY_BASE_SECONDS=100, WORKER_RETRY_MAX_SECONDS=100) as rig:
        real = time.time
        for number, skew in enumerate((-3600.0, 3600.0)):
            await rig.append(f"s{number}", "figs")
            with patch("time.time", lambda skew=skew: real() + skew), patch.object(task_handlers, "promote_session", _broken):
                await rig.work(DueKind.SESSION)
        seconds, _ = await rig.rt.client.time()
        assert all(49 < at / 1000 - seconds < 102 for at in (await rig.marks(DueKind.SESSION)).values())
        await rig.append("s0", "plums")
        await rig.work(DueKind.SESSION)
        assert sorted(memory.text for memory in await rig.stored()) == ["figs", "plums"]
        assert len(await rig.marks(DueKind.SESSION)) == 1


async def test_docket_retries_by_the_clock_of_the_worker_that_failed(make_rig: MakeRig) -> None:
    """This is why the outbox stores the delay of a failed attempt (docs/adr/0003).

    If this test fails, use docket's retry instead.
    """
    async with make_rig() as rig, rig.rt.docket() as docket:
        starts: list[int] = []
        anew: list[Disposition] = []

        async def failing(retry: ExponentialRetry = ExponentialRetry(attempts=2, minimum_delay=timedelta(hours=1))) -> None:  # noqa: B008
            starts.append(retry.attempt)
            raise ValueError("no")

        docket.register(failing)
        async with Worker(docket, name="behind", minimum_check_interval=timedelta(milliseconds=10)) as worker:
            running = asyncio.create_task(worker.run_forever())
            await docket.add(failing, key="k")()

            async def parked() -> bool:
                async with docket.redis() as redis:
                    return await redis.zcard(docket.queue_key) == 1

            await wait_until(parked, "the second try's time")
            anew.append((await docket.add(failing, key="k")()).disposition)
            # As a worker with a clock an hour behind would write it.
            async with docket.redis() as redis:
                await redis.zincrby(docket.queue_key, -3600, "k")

            async def twice() -> bool:
                return starts == [1, 2]

            await wait_until(twice, "the second try, an hour too early")
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        assert anew == [Disposition.ALREADY_SCHEDULED], "nor is new work begun while a failed try waits"


async def _broken(*_: object) -> list[str]:
    raise ModelAnswerInvalid("it talks nonsense")


async def test_fifty_writers_lose_no_message_during_summary_and_extraction(make_rig: MakeRig, make_chat: MakeChat) -> None:
    settings = {"DEFAULT_CONTEXT_WINDOW": 1024, "EXTRACTION_DEBOUNCE_SECONDS": 0.1, "WORKER_LEASE_SECONDS": 5}
    async with make_rig(await make_chat(), **settings) as rig:
        stop = asyncio.Event()
        workers = [asyncio.create_task(run_worker(rig.rt, rig.settings, stop)) for _ in range(2)]
        texts = {writer: [f"Writer {writer} bought house number {number} in Lisbon" for number in range(6)] for writer in range(50)}

        async def write(writer: int) -> None:
            for text in texts[writer]:
                answer = await rig.append("s", text)
                assert answer.appended == 1

        await gathered(write(writer) for writer in texts)

        async def idle() -> bool:
            return not await waiting(rig)

        await wait_until(idle, "an empty backlog", 120)
        stop.set()
        await asyncio.gather(*workers)
        entries = (await rig.rt[SessionStore].by_sid(rig.sid(SessionRef("s"))))[1].messages  # type: ignore[index]
        left = [entry.message.content for entry in entries]
        assert [entry.seq for entry in entries] == list(range(301 - len(entries), 301)), "the newest, without a gap"
        assert (await rig.rt[SessionService].get(SCOPE, "s")).session.context
        for said in texts.values():
            mine = [text for text in left if text in set(said)]
            assert mine == said[len(said) - len(mine) :]
        stored = await rig.stored()
        everything = sorted(text for said in texts.values() for text in said)
        assert sorted(one.text for one in stored if one.memory_type.value == "message") == everything
        assert sorted(one.text for one in stored if one.memory_type.value != "message") == [f"User said: {text}" for text in everything]
        assert (await rig.rt.outbox.backlog())[DueKind.EXTRACTION].dead == 0
