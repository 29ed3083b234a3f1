"""Test that /v1/ready reports problems with Redis, its indexes or the store."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import redis.asyncio as aioredis

from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.upkeep.reindex import Reindexer
from agent_memory.foundation.embedded.server import EmbeddedRedis, embedded_redis
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.search import indexes
from agent_memory.foundation.storage.search.indexes import (
    VectorSpec,
    ensure_index,
    memory_index_name,
    note_built,
    shared_schemas,
    vector_index_name,
)
from agent_memory.foundation.storage.store_watch import accept_store
from agent_memory.interfaces.http.app import create_app
from agent_memory_worker.main import run_worker
from tests.support.api import serving
from tests.support.cli import agent_memory
from tests.support.processes import running
from tests.support.rig import SCOPE, MakeRig, Rig, record
from tests.support.waiting import wait_until
from tests.system.conftest import MakeProxied
from tests.system.faults.fleet import free_port
from tests.system.faults.pictures import finished

pytestmark = pytest.mark.slow

_SEARCH = {"text": "violins in Lisbon", "limit": 100}
_MESSAGE = {"messages": [{"id": "m1", "role": "user", "content": "I moved to Lisbon in May"}]}
_REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/v1/working-memory/s/messages", {"json": _MESSAGE}),
    ("PUT", "/v1/working-memory/s", {"json": _MESSAGE}),
    ("POST", "/v1/long-term-memory/", {"json": {"memories": [{"id": "f2", "text": "Ana sings"}]}}),
    ("GET", "/v1/working-memory/s", {}),
    ("GET", "/v1/long-term-memory/f1", {}),
    ("POST", "/v1/long-term-memory/search", {"json": _SEARCH}),
    ("POST", "/v1/memory/prompt", {"json": {"query": "Ana", "session": {"session_id": "s"}, "long_term_search": True}}),
]


@pytest.fixture
async def own_redis(tmp_path: Path) -> AsyncGenerator[EmbeddedRedis]:
    """Start a Redis that one test may damage."""
    async with embedded_redis(tmp_path / "data") as redis:
        yield redis


@asynccontextmanager
async def served(rig: Rig) -> AsyncGenerator[httpx.AsyncClient]:
    async with (
        serving(create_app(rig.settings, rig.rt)) as base_url,
        httpx.AsyncClient(base_url=base_url, timeout=30) as http,
    ):
        yield http


def unready(http: httpx.AsyncClient, code: str) -> Callable[[], Awaitable[dict[str, Any] | None]]:
    """Return a function that gets the /v1/ready response if it has this code."""

    async def look() -> dict[str, Any] | None:
        answer = await http.get("/v1/ready")
        if answer.status_code != 503:
            return None
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.json()["ready"] is False
        return answer.json() if answer.json()["code"] == code else None

    return look


def ready(http: httpx.AsyncClient) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return (await http.get("/v1/ready")).status_code == 200

    return look


async def refused(http: httpx.AsyncClient, code: str) -> None:
    """Assert that every read and write returns a 503 that mentions the fix."""
    for method, path, body in _REQUESTS:
        answer = await http.request(method, path, **body)
        assert (answer.status_code, answer.json()["code"]) == (503, code), f"{method} {path}: {answer.status_code} {answer.text}"
        assert "agent-memory accept-store" in answer.json()["detail"]
        assert int(answer.headers["retry-after"]) >= 1


async def filled(rig: Rig) -> None:
    await rig.rt[MemoryService].store(SCOPE, [record(f"Ana bought {number} violins in Lisbon") for number in range(40)])
    await rig.append("s", "I moved to Porto")
    await finished(rig)


async def _out_of_memory(operator: aioredis.Redis, _: Path) -> None:
    await operator.config_set("maxmemory", "1mb")


async def _enough_memory(operator: aioredis.Redis, _: Path) -> None:
    await operator.config_set("maxmemory", "0")


async def _replica(operator: aioredis.Redis, _: Path) -> None:
    await operator.execute_command("REPLICAOF", "127.0.0.1", free_port())


async def _primary(operator: aioredis.Redis, _: Path) -> None:
    await operator.execute_command("REPLICAOF", "NO", "ONE")


async def _without_replicas(operator: aioredis.Redis, _: Path) -> None:
    await operator.config_set("min-replicas-to-write", "1")


async def _replicas_not_needed(operator: aioredis.Redis, _: Path) -> None:
    await operator.config_set("min-replicas-to-write", "0")


async def _saved(operator: aioredis.Redis, status: str) -> None:
    await operator.execute_command("BGSAVE")

    async def done() -> bool:
        info = await operator.info("persistence")
        return not info["rdb_bgsave_in_progress"] and info["rdb_last_bgsave_status"] == status

    await wait_until(done, f"a snapshot that ends with {status}")


async def _unable_to_save(operator: aioredis.Redis, folder: Path) -> None:
    # A directory has the name of the snapshot file.
    (folder / "dump.rdb" / "in-the-way").mkdir(parents=True)
    await operator.config_set("save", "3600 1")
    await _saved(operator, "err")


async def _able_to_save(operator: aioredis.Redis, folder: Path) -> None:
    (folder / "dump.rdb" / "in-the-way").rmdir()
    (folder / "dump.rdb").rmdir()
    await _saved(operator, "ok")


@pytest.mark.parametrize(
    ("code", "spoil", "heal"),
    [
        ("redis_out_of_memory", _out_of_memory, _enough_memory),
        ("redis_read_only", _replica, _primary),
        ("redis_without_replicas", _without_replicas, _replicas_not_needed),
        ("redis_cannot_persist", _unable_to_save, _able_to_save),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_ready_fails_while_redis_refuses_writes(
    own_redis: EmbeddedRedis, make_proxied: MakeProxied, code: str, spoil: Any, heal: Any
) -> None:
    async with (
        make_proxied(url=own_redis.url) as (rig, _),
        served(rig) as http,
        aioredis.Redis.from_url(own_redis.url) as operator,
    ):
        await wait_until(ready(http), "readiness")
        await spoil(operator, own_redis.data_dir)
        said = await wait_until(unready(http, code), code)
        assert "refuses writes" in said["problems"][0]["detail"]
        assert said["checks"]["redis"] == said["problems"][0]["detail"]
        await heal(operator, own_redis.data_dir)
        await wait_until(ready(http), "readiness without a restart")


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """Mount a 12 MB file system."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", disk], capture_output=True, check=False)
    if made.returncode != 0:
        pytest.skip("only root may make a file system")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


async def test_ready_fails_while_the_disk_is_full(small_disk: Path, make_proxied: MakeProxied) -> None:
    async with embedded_redis(small_disk / "data") as redis, make_proxied(url=redis.url) as (rig, _), served(rig) as http:
        await wait_until(ready(http), "readiness")
        with (small_disk / "ballast").open("wb", buffering=0) as ballast:
            while _written(ballast):
                pass

        async def full() -> bool:
            # The last block of a file has room for some bytes.
            body = {"messages": [{"role": "user", "content": "I moved to Lisbon. " * 40}]}
            return (await http.post("/v1/working-memory/s/messages", json=body)).status_code == 503

        await wait_until(full, "a write that finds no room")
        said = await wait_until(unready(http, "redis_cannot_persist"), "a full disk")
        assert "No space left on device" in said["detail"]
        (small_disk / "ballast").unlink()
        await wait_until(ready(http), "readiness without a restart")


def _written(file: Any) -> int:
    try:
        return file.write(b"x" * 4096)
    except OSError:
        return 0


async def test_lost_index_is_rebuilt_by_running_processes(make_rig: MakeRig) -> None:
    async with make_rig() as rig, make_rig(KEY_PREFIX=rig.settings.redis.key_prefix) as other:
        await filled(rig)
        async with served(rig) as http, served(other) as beside:
            whole = (await http.post("/v1/long-term-memory/search", json=_SEARCH)).json()
            spec = rig.rt.spec
            names = [memory_index_name(rig.keys), vector_index_name(rig.keys, spec)]
            for name in names:
                await rig.rt.client.execute_command("FT.DROPINDEX", name)
            asked = 0
            for each in (http, beside):

                async def complete(each: httpx.AsyncClient = each) -> bool:
                    nonlocal asked
                    asked += 1
                    answer = await each.post("/v1/long-term-memory/search", json=_SEARCH)
                    if answer.status_code == 503:
                        assert int(answer.headers["retry-after"]) >= 1
                        return False
                    assert answer.json()["total"] == whole["total"], "never a part"
                    return True

                await wait_until(complete, "the indexes")
            assert asked > 2, "while it is gone, that is said"
            for each in (http, beside):
                await wait_until(ready(each), "readiness")
        for name in names:
            info = await rig.rt.client.execute_command("FT.INFO", name)
            assert int(info[b"num_docs"]) == whole["total"], name
        # Processes that start later find the rebuilt indexes, and build nothing twice.
        before = sorted(await rig.rt.client.execute_command("FT._LIST"))
        async with make_rig(KEY_PREFIX=rig.settings.redis.key_prefix) as later:
            assert sorted(await later.rt.client.execute_command("FT._LIST")) == before
        # Neither do the tasks that clean up after former models.
        assert await rig.rt[Reindexer].drop_former_indexes() == []


async def test_ready_names_a_missing_index(own_redis: EmbeddedRedis, make_proxied: MakeProxied) -> None:
    """An ACL prevents the rebuild, which would otherwise restore the index immediately."""
    async with (
        make_proxied(url=own_redis.url) as (rig, _),
        served(rig) as http,
        aioredis.Redis.from_url(own_redis.url) as operator,
    ):
        await operator.execute_command("ACL", "SETUSER", "default", "-FT.CREATE")
        await operator.execute_command("FT.DROPINDEX", memory_index_name(rig.keys))
        said = await wait_until(unready(http, "index_missing"), "the missing index")
        assert memory_index_name(rig.keys) in said["detail"]
        await operator.execute_command("ACL", "SETUSER", "default", "+@all")
        await wait_until(ready(http), "the index")


_INDEXED = 8_000


async def test_writes_during_an_index_rebuild_are_indexed_once(own_redis: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch) -> None:
    # Only the end of the rebuild allows writes, however long a busy machine takes and the pausing program sleeps.
    monkeypatch.setattr(indexes, "_PAUSED_SECONDS", 120.0)
    monkeypatch.setattr(indexes, "_PAUSE_MS", 120_000)
    keys = Keys("t")
    schema = shared_schemas(keys, VectorSpec("m", 3))["memories"]
    async with (
        aioredis.Redis.from_url(own_redis.url, protocol=3) as client,
        aioredis.Redis.from_url(own_redis.url, socket_timeout=None) as writer,
    ):
        await note_built(client, keys)
        async with client.pipeline(transaction=False) as pipe:
            for number in range(_INDEXED):
                pipe.hset(keys.memory(f"a{number}"), mapping={"k": "violin", "t": "aa"})
            await pipe.execute()
        building = asyncio.create_task(ensure_index(client, keys, schema))
        count = 0
        while not building.done():
            await writer.hset(keys.memory(f"b{count}"), mapping={"k": "cello", "t": "aa"})
            count += 1
        assert await building
        await writer.hset(keys.memory("c"), mapping={"k": "cello", "t": "aa"})
        found = await client.execute_command("FT.INFO", schema.index.name)
        assert int(found[b"num_docs"]) == _INDEXED + count + 1
        # Each number is used once: a reindexed document gets another. A few may come between the index's beginning and the pause.
        assert int(found[b"max_doc_id"]) <= _INDEXED + count + 1 + 20


async def test_emptied_store_is_refused_until_accepted(
    own_redis: EmbeddedRedis, make_proxied: MakeProxied, caplog: pytest.LogCaptureFixture
) -> None:
    async with AsyncExitStack() as stack:
        rig, _ = await stack.enter_async_context(make_proxied(url=own_redis.url))
        http = await stack.enter_async_context(served(rig))
        operator = await stack.enter_async_context(aioredis.Redis.from_url(own_redis.url))
        stop = asyncio.Event()
        worker = asyncio.create_task(run_worker(rig.rt, rig.settings, stop))
        stack.push_async_callback(lambda: worker)
        stack.callback(stop.set)
        assert (await http.post("/v1/working-memory/s/messages", json=_MESSAGE)).status_code == 200
        await operator.flushall()
        with caplog.at_level(logging.ERROR):
            said = await wait_until(unready(http, "store_lost"), "the loss")
        assert "agent-memory accept-store" in said["detail"]
        assert any("accept-store" in vars(entry)["error"] for entry in caplog.records if entry.message == "not ready")
        await refused(http, "store_lost")
        # A process that starts now never knew the store, and learns that it existed.
        async with make_proxied(url=own_redis.url, KEY_PREFIX=rig.settings.redis.key_prefix) as (later, _), served(later) as beside:
            await refused(beside, "store_lost")
            await accept_store(own_redis.url, [rig.keys], None, command_timeout=5)
            for each in (http, beside):
                await wait_until(ready(each), "readiness after the loss was accepted")
                assert (await each.get("/v1/working-memory/s")).status_code == 404
            assert rig.rt.ids.of("a message") == later.rt.ids.of("a message"), "both know the new store's key of ids"
        assert (await http.post("/v1/working-memory/s/messages", json=_MESSAGE)).status_code == 200

        async def promoted() -> bool:
            return [one.text for one in await rig.stored()] == ["I moved to Lisbon in May"]

        await wait_until(promoted, "the worker's work in the new store")
        search = await http.post("/v1/long-term-memory/search", json={"text": "Lisbon"})
        assert (search.status_code, search.json()["total"]) == (200, 1)


@pytest.mark.parametrize(("code", "there"), [("store_lost", False), ("store_changed", True)])
async def test_first_request_to_another_redis_is_refused(
    own_redis: EmbeddedRedis, tmp_path: Path, make_proxied: MakeProxied, code: str, there: bool
) -> None:
    """Not even one request reaches an unknown store."""
    async with AsyncExitStack() as stack:
        rig, proxy = await stack.enter_async_context(make_proxied(url=own_redis.url))
        another = await stack.enter_async_context(embedded_redis(tmp_path / "another"))
        operator = await stack.enter_async_context(aioredis.Redis.from_url(another.url))
        await operator.config_set("requirepass", urlsplit(own_redis.url).password)
        if there:
            url = own_redis.url.replace(f":{own_redis.port}/", f":{another.port}/")
            async with make_proxied(url=url, KEY_PREFIX=rig.settings.redis.key_prefix) as (its, _):
                await its.append("s", "somebody else's")
        http = await stack.enter_async_context(served(rig))
        assert (await http.post("/v1/working-memory/s/messages", json=_MESSAGE)).status_code == 200
        before = {key async for key in operator.scan_iter()}
        home, proxy.target = proxy.target, another.port
        proxy.cut()
        # Each broken connection gets one error.
        for _ in range(3):
            assert (await http.post("/v1/working-memory/s/messages", json=_MESSAGE)).status_code == 503
        await refused(http, code)
        assert (await wait_until(unready(http, code), code))["problems"][0]["code"] == code
        assert {key async for key in operator.scan_iter()} - before <= {rig.keys.config.encode()}
        proxy.target = home
        proxy.cut()
        await wait_until(ready(http), "the store we know")
        assert (await http.get("/v1/working-memory/s")).json()["messages"][0]["content"] == "I moved to Lisbon in May"


async def test_missing_data_directory_is_reported_and_can_be_accepted(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with running(tmp_path, "serve", "--port", "0", "--data-dir", "data", warm=True) as server:
        async with httpx.AsyncClient(base_url=await server.base_url(), timeout=30) as http:
            assert (await http.post("/v1/working-memory/s/messages", json=_MESSAGE)).status_code == 200
        assert await server.stop() == 0
    (data / "appendonlydir").rename(tmp_path / "elsewhere")
    told = await asyncio.to_thread(agent_memory, "doctor", "--data-dir", "data", "--port", "0", cwd=tmp_path)
    assert told.returncode == 1
    # The line breaks depend on the length of the path.
    assert "agent-memory accept-store" in " ".join(told.stdout.split())
    async with running(tmp_path, "serve", "--port", "0", "--data-dir", "data", warm=True) as server:
        async with httpx.AsyncClient(base_url=await server.base_url(), timeout=30) as http:
            await wait_until(unready(http, "store_lost"), "the loss")
            await refused(http, "store_lost")
            told = await asyncio.to_thread(agent_memory, "doctor", "--data-dir", "data", "--port", "0", cwd=tmp_path)
            assert (told.returncode, "Redis is empty" in " ".join(told.stdout.split())) == (1, True), told.stdout
            assert "accept-store" in server.output
            accepted = await asyncio.to_thread(agent_memory, "accept-store", "--data-dir", "data", "--json", cwd=tmp_path)
            assert accepted.returncode == 0, accepted.stderr
            (store,) = json.loads(accepted.stdout)
            assert store["store"] != store["lost"] is not None
            await wait_until(ready(http), "readiness")
            assert (await http.post("/v1/working-memory/s/messages", json=_MESSAGE)).status_code == 200
        assert await server.stop() == 0
    # The copy of the former data is not the store that was accepted.
    (data / "appendonlydir").rename(tmp_path / "accepted")
    (tmp_path / "elsewhere").rename(data / "appendonlydir")
    async with running(tmp_path, "serve", "--port", "0", "--data-dir", "data", warm=True) as server:
        async with httpx.AsyncClient(base_url=await server.base_url(), timeout=30) as http:
            await wait_until(unready(http, "store_changed"), "another store")
        assert await server.stop() == 0
    accepted = await asyncio.to_thread(agent_memory, "accept-store", "--data-dir", "data", cwd=tmp_path)
    assert (accepted.returncode, accepted.stdout.startswith("accepted the store ")) == (0, True), accepted.stderr
    async with running(tmp_path, "serve", "--port", "0", "--data-dir", "data", warm=True) as server:
        async with httpx.AsyncClient(base_url=await server.base_url(), timeout=30) as http:
            await wait_until(ready(http), "readiness")
            assert (await http.get("/v1/working-memory/s")).status_code == 200
        assert await server.stop() == 0
