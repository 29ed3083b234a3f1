"""Test requests while Redis is full, loading, a replica, or unable to write (F10).

Writes get a 503 with a reason, reads still work, and the server recovers on its own.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest
import redis.asyncio as aioredis

from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.embedded.server import embedded_redis
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import Runtime
from agent_memory_worker.sessions.promote import promote_session
from agent_memory_worker.sessions.summarize import summarize_session
from tests.support.api import serving
from tests.support.rig import SCOPE, Rig
from tests.support.waiting import wait_until
from tests.system.conftest import MakeChat, MakeProxied
from tests.system.faults.fleet import free_port
from tests.system.faults.pictures import WORKED, finished, picture
from tests.system.faults.proxy import Proxy

pytestmark = pytest.mark.slow

_BODY = {"messages": [{"id": "m1", "role": "user", "content": "I moved to Lisbon in May", "created_at": "2026-01-02"}]}
_MORE = {"messages": [{"id": "m2", "role": "user", "content": "Now I live in Porto", "created_at": "2026-01-03"}]}
_WRITES: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/v1/working-memory/s/messages", {"json": _MORE}),
    ("PUT", "/v1/working-memory/s", {"json": _BODY}),
    ("PATCH", "/v1/working-memory/s/data", {"json": {"data": {"k": 2}}}),
    ("POST", "/v1/long-term-memory/", {"json": {"memories": [{"id": "f2", "text": "Ana sings"}]}}),
    ("PATCH", "/v1/long-term-memory/f1", {"json": {"text": "Ana sails a boat"}}),
]
_READS: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/v1/working-memory/s", {}),
    ("GET", "/v1/working-memory/", {}),
    ("GET", "/v1/long-term-memory/f1", {}),
    ("POST", "/v1/long-term-memory/search", {"json": {"text": "Ana"}}),
    ("POST", "/v1/memory/prompt", {"json": {"query": "Ana", "session": {"session_id": "s"}, "long_term_search": True}}),
]
_STATES = {
    "full": ({"maxmemory": "1mb"}, {"maxmemory": "0"}),
    "without replicas": ({"min-replicas-to-write": "1"}, {"min-replicas-to-write": "0"}),
}


@pytest.fixture(scope="module")
async def own_redis(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[str]:
    """Start a Redis that these tests may damage."""
    async with embedded_redis(tmp_path_factory.mktemp("spoilt")) as redis:
        yield redis.url


@pytest.fixture
async def operator(own_redis: str) -> AsyncGenerator[aioredis.Redis]:
    """Connect to Redis as the operator."""
    client = aioredis.Redis.from_url(own_redis)
    yield client
    await client.aclose()


async def refused(http: httpx.AsyncClient, method: str, path: str, **body: Any) -> str:
    """Send a write, assert that the server refuses it, and return the reason."""
    answer = await http.request(method, path, **body)
    assert (answer.status_code, answer.json()["code"]) == (503, "redis_unavailable"), f"{method} {path}: {answer.status_code} {answer.text}"
    assert int(answer.headers["retry-after"]) >= 1
    return answer.json()["detail"]


async def served(http: httpx.AsyncClient, requests: list[tuple[str, str, dict[str, Any]]]) -> None:
    for method, path, body in requests:
        answer = await http.request(method, path, **body)
        assert answer.status_code == 200, f"{method} {path}: {answer.status_code} {answer.text}"


async def prepared(rig: Rig, http: httpx.AsyncClient) -> None:
    await served(http, [("PUT", "/v1/working-memory/s", {"json": {**_BODY, "data": {"k": 1}}})])
    await served(http, [("POST", "/v1/long-term-memory/", {"json": {"memories": [{"id": "f1", "text": "Ana sails"}]}})])
    await finished(rig)


@pytest.mark.parametrize("state", _STATES)
async def test_writes_get_503_with_reason_while_reads_work(
    make_proxied: MakeProxied, own_redis: str, operator: aioredis.Redis, state: str
) -> None:
    spoil, heal = _STATES[state]
    async with (
        make_proxied(url=own_redis) as (rig, _),
        serving(create_app(rig.settings, rig.rt)) as base_url,
        httpx.AsyncClient(base_url=base_url) as http,
    ):
        await prepared(rig, http)
        before = await picture(rig)
        for name, value in spoil.items():
            await operator.config_set(name, value)
        try:
            reasons = {await refused(http, method, path, **body) for method, path, body in _WRITES}
            assert all(reasons), reasons
            await served(http, _READS)
            assert await picture(rig) == before, "what was refused left a trace"
        finally:
            for name, value in heal.items():
                await operator.config_set(name, value)
        await served(http, _WRITES)
        await finished(rig)
        assert sorted(one.text for one in await rig.stored()) == [
            *("Ana sails a boat", "Ana sings", "I moved to Lisbon in May", "Now I live in Porto")
        ]


async def test_background_work_changes_nothing_while_redis_is_full(
    make_proxied: MakeProxied, make_chat: MakeChat, own_redis: str, operator: aioredis.Redis
) -> None:
    """A full Redis rejects all scripts but allows commands that free memory."""
    settings = {"DEFAULT_CONTEXT_WINDOW": 256, "EXTRACTION_DEBOUNCE_SECONDS": 0}
    async with make_proxied(await make_chat(), url=own_redis, **settings) as (rig, _):
        for number in range(12):
            await rig.append("s", f"In year {number} I bought a house with {number} rooms near the old harbour of Lisbon")
        await rig.work(DueKind.MEMORY)
        before = await picture(rig)
        await operator.config_set("maxmemory", "1mb")
        try:
            for kind in WORKED:
                with pytest.raises(RedisUnavailable):
                    await rig.work(kind)
            (sid,) = await rig.marks(DueKind.SESSION)
            with pytest.raises(RedisUnavailable):
                await promote_session(rig.rt, sid)
            with pytest.raises(RedisUnavailable):
                await summarize_session(rig.rt, sid)
            assert await picture(rig) == before
            await rig.rt[SessionService].delete(SCOPE, "s")
            assert not [key for key in await rig.raw_keys() if sid in key]
        finally:
            await operator.config_set("maxmemory", "0")


async def test_a_replica_refuses_writes_and_serves_reads(make_proxied: MakeProxied, own_redis: str, operator: aioredis.Redis) -> None:
    async with (
        make_proxied(url=own_redis) as (rig, _),
        serving(create_app(rig.settings, rig.rt)) as base_url,
        httpx.AsyncClient(base_url=base_url) as http,
    ):
        await prepared(rig, http)
        await operator.execute_command("REPLICAOF", "127.0.0.1", free_port())
        try:
            for method, path, body in _WRITES:
                await refused(http, method, path, **body)
            await served(http, _READS)
            assert (await rig.rt[SessionService].get(SCOPE, "s")).session.data == {"k": 1}
        finally:
            await operator.execute_command("REPLICAOF", "NO", "ONE")
        await served(http, _WRITES)


@pytest.mark.parametrize(
    "said",
    [
        b"-LOADING Redis is loading the dataset in memory\r\n",
        b"-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.\r\n",
        b"-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n",
        b"-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
        b"-CLUSTERDOWN The cluster is down\r\n",
        b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
    ],
    ids=lambda said: said[1:].split()[0].decode(),
)
async def test_every_temporary_redis_error_gives_503(make_proxied: MakeProxied, said: bytes) -> None:
    """The proxy returns errors that are hard to cause in Redis."""
    async with (
        make_proxied() as (rig, proxy),
        serving(create_app(rig.settings, rig.rt)) as base_url,
        httpx.AsyncClient(base_url=base_url) as http,
    ):
        await prepared(rig, http)
        proxy.answer = said
        for method, path, body in [_WRITES[0], _WRITES[1], _WRITES[3]]:
            await refused(http, method, path, **body)
        proxy.answer = None
        await served(http, [*_WRITES, *_READS])


async def test_process_becomes_ready_again_when_redis_returns(make_proxied: MakeProxied) -> None:
    async with (
        make_proxied() as (rig, proxy),
        serving(create_app(rig.settings, rig.rt)) as base_url,
        httpx.AsyncClient(base_url=base_url) as http,
    ):
        await prepared(rig, http)
        for bring_down in (_refuse, _cut):
            bring_down(proxy)
            for method, path, body in _WRITES[:1] + _READS:
                answer = await http.request(method, path, **body)
                assert answer.status_code in (200, 503), f"{path}: {answer.status_code}"
            assert (await http.get("/v1/health")).status_code == 200
            proxy.heal()
            await wait_until(lambda: _ready(rig.rt), "readiness", 10)
            await served(http, [*_WRITES, *_READS])


def _refuse(proxy: Proxy) -> None:
    proxy.refuse = True
    proxy.cut()


def _cut(proxy: Proxy) -> None:
    proxy.cut()


async def _ready(rt: Runtime) -> bool:
    return (await rt.ready()).ok
