"""Test that changing a live store's embedding model loses nothing, even after kills."""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from redis.asyncio import Redis
from ulid import ULID

from tests.support.lookalike import Lookalike
from tests.support.processes import Running, start
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

_OLD, _NEW = "all-MiniLM-L6-v2", "multilingual-e5-small"
_MEMORIES = 100
# A question without the memory's words, and the memory.
_LABELLED = {
    "What pet does she have?": "Ada adopted a small grey kitten",
    "Which instrument is he learning?": "Ben takes piano lessons on Mondays",
    "Where do they go on holiday?": "The family travels to Portugal each summer",
    "What can she not eat?": "Clara gets hives from peanuts",
    "How does he get to work?": "Dan rides his bicycle to the office",
    "What is her job?": "Eva treats patients at the city hospital",
}


class Store:
    """A store in the tests' Redis, and processes configured with the old model."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        self.prefix = f"t-{ULID()}"
        self._folder = folder
        self._environment = {
            "REDIS_URL": redis_url,
            "KEY_PREFIX": self.prefix,
            "LOCAL_MODEL": _OLD,
            "MODEL_PROVIDER": "local",
            "DISABLE_AUTH": "true",
        }
        self.redis = Redis.from_url(redis_url)
        self.running: list[Running] = []

    def set(self, **environment: str) -> None:
        self._environment |= environment

    async def begin(self, command: str) -> Running:
        arguments = (command,) if command == "worker" else (command, "--port", "0")
        one = start(self._folder, *arguments, warm=True, **self._environment)
        self.running.append(one)
        await (one.said("(worker ready)") if command == "worker" else one.base_url())
        return one

    async def fields(self) -> Counter[str]:
        """Count all documents by vector field, with "none" for memories that have no vector."""
        counts: Counter[str] = Counter()
        async for key in self.redis.scan_iter(match=f"{self.prefix}:{{0}}:[vhp]:*", count=1000):
            fields = cast("list[bytes]", await self.redis.hkeys(key))
            names = [name.decode() for name in fields if name.startswith(b"v_")]
            counts.update(names or ["none"])
        async for key in self.redis.scan_iter(match=f"{self.prefix}:{{0}}:m:*", count=1000):
            counts["none"] += not await self.redis.exists(key.decode().replace(":m:", ":v:"))
        return +counts


@pytest.fixture
async def store(tmp_path: Path, redis_url: str) -> AsyncGenerator[Store]:
    made = Store(tmp_path, redis_url)
    try:
        yield made
    finally:
        for one in made.running:
            if one.process.poll() is None:
                await one.kill()
        await made.redis.aclose()


async def write(http: httpx.AsyncClient, texts: dict[str, str], **more: Any) -> None:
    memories = [{"id": name, "text": text, "memory_type": "semantic", **more} for name, text in texts.items()]
    answer = await http.post("/v1/long-term-memory/", json={"memories": memories})
    assert answer.status_code == 200, answer.text


async def recall(http: httpx.AsyncClient) -> float:
    """Return the share of questions whose memory ranks first in a semantic search."""
    right = 0
    for question, text in _LABELLED.items():
        request = {"text": question, "search_mode": "semantic", "limit": 1, "user_id": {"eq": "ada"}}
        answer = await http.post("/v1/long-term-memory/search", json=request)
        assert answer.status_code == 200, answer.text
        right += [hit["text"] for hit in answer.json()["memories"]] == [text]
    return right / len(_LABELLED)


@asynccontextmanager
async def used(http: httpx.AsyncClient, written: set[str], least: float) -> AsyncGenerator[list[float]]:
    """Use the store during the block, and assert that recall never falls below `least`."""
    shares: list[float] = []

    async def use() -> None:
        for number in itertools.count():
            await write(http, {f"new{number}": f"Note {number} about chapter {number * 7}"}, user_id="eve")
            written.add(f"new{number}")
            edited = await http.patch(f"/v1/long-term-memory/m{number % _MEMORIES}", json={"text": f"Changed note {number}"})
            assert edited.status_code == 200, edited.text
            if number % 3 == 0:
                await http.request("DELETE", "/v1/long-term-memory", params={"memory_ids": [f"new{number}"]})
                written.discard(f"new{number}")
            shares.append(await recall(http))
            assert shares[-1] >= least, shares
            await asyncio.sleep(0.5)  # the pace of the callers

    task = asyncio.create_task(use())
    try:
        yield shares
    finally:
        task.cancel()
        results = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError), results


async def status(http: httpx.AsyncClient) -> dict[str, Any]:
    return (await http.get("/v1/reembed")).json()


async def test_model_change_under_load_with_kills_loses_no_memory(store: Store) -> None:
    first, second, worker = await asyncio.gather(store.begin("api"), store.begin("api"), store.begin("worker"))
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(httpx.AsyncClient(base_url=await first.base_url(), timeout=60))
        written = {f"m{n}" for n in range(_MEMORIES)}
        await write(http, {f"m{n}": f"Entry number {n} of the logbook, page {n * 3}" for n in range(_MEMORIES)}, user_id="bob")
        await write(http, {f"q{n}": text for n, text in enumerate(_LABELLED.values())}, user_id="ada")
        await write(http, {"secret": "A memory to erase"}, user_id="gone")
        await wait_until(lambda: embedded(store), "one vector each", seconds=300)
        before = await recall(http)
        (old_field,) = await store.fields()
        dry = (await http.post("/v1/reembed", json={"model": _NEW, "dry_run": True})).json()
        assert dry["tokens"] > dry["texts"] > _MEMORIES, dry
        assert (await http.post("/v1/reembed", json={"model": _OLD})).status_code == 422
        assert (await http.post("/v1/reembed", json={"model": _NEW, "rate": 30})).json()["phase"] == "filling"
        assert (await http.post("/v1/reembed", json={"model": _NEW})).status_code == 409
        async with used(http, written, before) as shares:
            await wait_until(lambda: is_at(http, "filling", 10), "ten are filled", seconds=400)
            await worker.kill()
            await second.kill()
            assert (await http.delete("/v1/users/gone")).status_code in (200, 202)
            worker = await store.begin("worker")
            assert (await http.post("/v1/reembed/pause")).json()["phase"] == "paused"
            assert (await http.post("/v1/reembed/resume")).json()["phase"] == "filling"
            await wait_until(lambda: is_at(http, "swapped"), "the switch", seconds=400)
            count = len(shares)
            await wait_until(lambda: longer(shares, count + 3), "searches after the switch", seconds=300)
        # A killed process may count as one that still uses the old model.
        await wait_until(lambda: accepted(http, "confirm"), "the confirmation", seconds=60)
        await wait_until(lambda: is_at(http, "none"), "the end", seconds=300)
        assert (await status(http))["model"] == _NEW
        assert await recall(http) >= before
        await wait_until(lambda: embedded(store), "one vector each", seconds=300)
        (new_field,) = await store.fields()
        assert new_field != old_field
        for name in written:
            assert (await http.get(f"/v1/long-term-memory/{name}")).status_code == 200, name
        assert (await http.get("/v1/long-term-memory/secret")).status_code == 404
        # A process whose environment still names the old model opens the new one.
        third = await store.begin("api")
        async with httpx.AsyncClient(base_url=await third.base_url(), timeout=60) as late:
            assert (await status(late))["model"] == _NEW
            assert await recall(late) >= before


async def embedded(store: Store) -> bool:
    fields = await store.fields()
    return len(fields) == 1 and "none" not in fields


async def is_at(http: httpx.AsyncClient, phase: str, done: int = 0) -> bool:
    now = await status(http)
    return now["phase"] == phase and now["done"] >= done


async def longer(values: list[float], count: int) -> bool:
    return len(values) >= count


async def test_changes_of_the_provider_keep_memories_searchable_while_processes_sleep(store: Store, lookalike: Lookalike) -> None:
    """Switch from a local model to a model server and back. One process misses each switch."""
    store.set(EMBEDDING_PROVIDER="local", EMBEDDING_BASE_URL=lookalike.url, EMBEDDING_API_KEY="sk-test-0000")
    first, sleeper, worker, late = await asyncio.gather(*(store.begin(command) for command in ("api", "api", "worker", "worker")))
    urls = await first.base_url(), await sleeper.base_url()
    async with httpx.AsyncClient(base_url=urls[0], timeout=60) as http, httpx.AsyncClient(base_url=urls[1], timeout=60) as other:
        await write(http, {f"m{n}": f"Entry number {n} of the logbook" for n in range(20)}, user_id="bob")
        await write(http, {f"q{n}": text for n, text in enumerate(_LABELLED.values())}, user_id="ada")
        await wait_until(lambda: embedded(store), "one vector each", seconds=60)
        (local,) = await store.fields()
        written = 0

        async def check(client: httpx.AsyncClient) -> None:
            """Assert that semantic search finds a new memory and all existing ones."""
            nonlocal written
            written += 1
            name = f"w{written}"
            await write(client, {name: f"Zebra number {written} sleeps"}, user_id=name)
            await wait_until(lambda: found(client, name, f"Zebra number {written} sleeps"), f"{name} is found", seconds=60)
            assert await count(client) == len(_LABELLED)

        async def begin(rate: int) -> None:
            answer = await http.post("/v1/reembed", json={"model": "other", "provider": "openai", "rate": rate, "dimensions": 256})
            assert answer.json()["phase"] == "filling", answer.text

        await begin(5)
        await wait_until(lambda: is_at(http, "filling", 3), "three are filled", seconds=60)
        await check(other)
        assert (await http.post("/v1/reembed/pause")).json()["phase"] == "paused"
        await check(other)
        assert (await http.post("/v1/reembed/abort")).json()["phase"] == "ending"
        await wait_until(lambda: is_at(http, "none"), "the end of the abortion", seconds=60)
        assert list(await store.fields()) == [local]

        for action, kept in (("rollback", "first"), ("confirm", "second")):
            await begin(8)
            await wait_until(partial(announced, store, 4), "the announcements of all processes")
            for one in (sleeper, late):
                one.process.send_signal(signal.SIGSTOP)
            await wait_until(lambda: is_at(http, "swapped"), "the switch", seconds=60)
            await check(http)
            if action == "confirm":
                assert (await http.post("/v1/reembed/confirm")).status_code == 409
            else:
                for one in (sleeper, late):
                    one.process.send_signal(signal.SIGCONT)
            await check(http)
            await wait_until(partial(acted, store, http, action), action, seconds=60)
            await wait_until(lambda: is_at(http, "none"), "the end", seconds=60)
            for one in (sleeper, late):
                one.process.send_signal(signal.SIGCONT)
            await check(http)
            await wait_until(lambda: answers(other), "an answer of the process that slept", seconds=60)
            await check(other)
            await worker.kill()
            worker = await store.begin("worker")
            await check(other)
            await wait_until(lambda: embedded(store), "one vector each", seconds=60)
            assert (list(await store.fields()) == [local]) == (kept == "first")
        assert (await status(other))["model"] == "other"


async def count(http: httpx.AsyncClient) -> int:
    request = {"text": "anything", "search_mode": "semantic", "limit": 50, "user_id": {"eq": "ada"}}
    answer = await http.post("/v1/long-term-memory/search", json=request)
    assert answer.status_code == 200, answer.text
    return len(answer.json()["memories"])


async def answers(http: httpx.AsyncClient) -> bool:
    request = {"text": "anything", "search_mode": "semantic", "user_id": {"eq": "ada"}}
    return (await http.post("/v1/long-term-memory/search", json=request)).status_code == 200


async def found(http: httpx.AsyncClient, user: str, text: str) -> bool:
    request = {"text": text, "search_mode": "semantic", "user_id": {"eq": user}}
    answer = await http.post("/v1/long-term-memory/search", json=request)
    assert answer.status_code == 200, answer.text
    return len(answer.json()["memories"]) == 1


async def acted(store: Store, http: httpx.AsyncClient, action: str) -> bool:
    """Perform the action. Before "confirm", delete the announcements from sleeping processes."""
    if action == "confirm":
        await store.redis.delete(f"{store.prefix}:{{0}}:re:processes")
    return await accepted(http, action)


async def accepted(http: httpx.AsyncClient, action: str) -> bool:
    return (await http.post(f"/v1/reembed/{action}")).status_code == 200


async def announced(store: Store, count: int) -> bool:
    return await cast("Any", store.redis.hlen(f"{store.prefix}:{{0}}:re:processes")) == count
