"""Test paused workers, tasks that kill workers, and SIGTERM under load (F4, F7, F16)."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import httpx
import pytest
import redis.asyncio as aioredis

from agent_memory.features.memories.records import decode_memory
from agent_memory.features.sessions.codec import decode_entry
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.keyspace import Keys
from tests.support.waiting import wait_until
from tests.system.faults.fleet import Member
from tests.system.faults.run import Ground, ground
from tests.system.faults.workload import Client, Figures

pytestmark = pytest.mark.slow

_KEYS = Keys()
_SETTINGS = {
    "WORKER_NICENESS": "0",
    "WORKER_LEASE_SECONDS": "1",
    "WORKER_REDELIVERY_TIMEOUT_SECONDS": "1",
    "WORKER_MAX_ATTEMPTS": "3",
    "EXTRACTION_DEBOUNCE_SECONDS": "0",
    "DEFAULT_CONTEXT_WINDOW": "16000",
    "MODEL_TIMEOUT_SECONDS": "60",
}


@pytest.fixture(scope="module")
async def on(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Ground]:
    """Start Redis, one API and one worker."""
    async with ground(tmp_path_factory.mktemp("processes"), apis=1, workers=1, **_SETTINGS) as made:
        yield made


@pytest.fixture
async def redis(on: Ground) -> AsyncGenerator[aioredis.Redis]:
    client = on.direct()
    yield client
    await client.aclose()


@pytest.fixture(autouse=True)
async def healed(on: Ground) -> AsyncGenerator[None]:
    """Clear all faults after each test."""
    yield
    on.model.heal()
    on.model.cut()


@pytest.fixture
async def http(on: Ground) -> AsyncGenerator[httpx.AsyncClient]:
    await on.fleet.ready()
    async with httpx.AsyncClient(base_url=on.fleet.api_urls[0], timeout=20) as client:
        yield client


def said(session: str, count: int = 4) -> list[dict[str, Any]]:
    return [
        {"id": f"{session}-{n}", "role": "user", "content": f"{session}: I bought {n} violins in Lisbon", "created_at": "2026-01-02"}
        for n in range(count)
    ]


def sid(session: str) -> str:
    return _KEYS.sid("default", SessionRef(session))


async def memories(redis: aioredis.Redis, session: str, strategy: str) -> list[str]:
    """Read the texts of a session's memories with this extraction strategy from Redis."""
    names = [name async for name in redis.scan_iter(match=_KEYS.memory_prefix + "*", count=1000)]
    found = [decode_memory(raw) for name in names if (raw := await redis.hget(name, "j"))]
    return sorted(one.text for one in found if one.session_id == session and one.extraction_strategy == strategy)


def token_of(redis: aioredis.Redis, kind: DueKind, member: str) -> Callable[[], Awaitable[str | None]]:
    """Return a function that gets a started task's token, or None if it has not started."""

    async def look() -> str | None:
        words = (await redis.hget(_KEYS.tries(kind), member) or b"").decode().split()
        return words[2] if len(words) > 2 and words[2].startswith("b") else None

    return look


def nothing_pending(redis: aioredis.Redis) -> Callable[[], Awaitable[bool]]:
    """Return a function that checks whether docket's workers have no pending messages."""

    async def look() -> bool:
        return (await redis.xpending("am:agent-memory:stream", "docket-workers"))["pending"] == 0

    return look


def all_there(redis: aioredis.Redis, session: str, strategy: str, texts: list[str]) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return len(await memories(redis, session, strategy)) >= len(texts)

    return look


async def test_worker_resumed_after_its_lease_changes_nothing(on: Ground, redis: aioredis.Redis, http: Any) -> None:
    facts = sorted(f"User said: {message['content']}" for message in said("zombie"))
    first = on.fleet.places["worker0"]
    on.model.delay = 1.5  # long enough to stop the worker in the middle of a call
    assert (await http.post("/v1/working-memory/zombie/messages", json={"messages": said("zombie")})).status_code == 200
    await wait_until(token_of(redis, DueKind.EXTRACTION, sid("zombie")), "the claim of the first worker")
    assert on.fleet.stop(first)
    on.model.delay = 0.0
    second = Member("worker1", ("worker",), first.settings)
    await on.fleet.add(second)
    await wait_until(all_there(redis, "zombie", "discrete", facts), "the second worker's facts")
    on.fleet.resume(first)
    await wait_until(nothing_pending(redis), "the end of both attempts")
    assert await memories(redis, "zombie", "discrete") == facts
    assert await memories(redis, "zombie", "message") == sorted(message["content"] for message in said("zombie"))
    assert not await redis.zscore(_KEYS.dead(DueKind.EXTRACTION), sid("zombie"))
    assert first.starts == 1, "the stopped worker went on working"


async def test_work_that_kills_workers_becomes_dead_letter_and_can_be_replayed(on: Ground, redis: aioredis.Redis, http: Any) -> None:
    member = sid("poison")
    on.model.delay = 60.0
    assert (await http.post("/v1/working-memory/poison/messages", json={"messages": said("poison")})).status_code == 200
    seen: set[str] = set()
    for death in range(3):

        async def next_token(seen: set[str] = seen) -> str | None:
            token = await token_of(redis, DueKind.EXTRACTION, member)()
            return token if token not in seen else None

        token = await wait_until(next_token, f"try {death + 1}", 30)
        for place in on.fleet.of("worker"):
            on.fleet.kill(place)
        seen.add(token)

    batch = f"{member}.0"

    async def dead() -> bool:
        return await redis.zscore(_KEYS.dead(DueKind.EXTRACTION), batch) is not None

    await wait_until(dead, "a dead letter after three deaths", 30)
    assert b"crashed the workers" in await redis.hget(_KEYS.why(DueKind.EXTRACTION), batch)
    listed = (await http.get("/v1/operations", params={"state": "dead"})).json()["operations"]
    given_up = {one["kind"]: one for one in listed if one["session_id"] == "poison"}
    assert "crashed the workers" in given_up["extraction"]["reason"]
    on.model.heal()
    on.model.cut()
    # Other work in those workers may have died as often; the replay of one may restart another.
    for kind, operation in sorted(given_up.items(), key=lambda one: one[0] != "extraction"):
        replayed = await http.post(f"/v1/operations/{operation['id']}/replay")
        revived = replayed.status_code == 409 and "not dead" in replayed.text
        assert replayed.status_code == 200 or (revived and kind != "extraction"), replayed.text
    await wait_until(all_there(redis, "poison", "message", ["-"] * 4), "the verbatim memories")
    await wait_until(all_there(redis, "poison", "discrete", ["-"] * 4), "the facts after the replay")
    assert await memories(redis, "poison", "discrete") == sorted(f"User said: {message['content']}" for message in said("poison"))


@pytest.mark.parametrize("what", ["undecodable", "of an unknown task"])
async def test_unreadable_task_message_does_not_stop_workers(on: Ground, redis: aioredis.Redis, http: Any, what: str) -> None:
    name = what.replace(" ", "-")
    starts = {place.name: place.starts for place in on.fleet.of("worker")}
    message = {"key": name, "when": "2026-01-01T00:00:00+00:00", "function": "process_session", "attempt": "1", "generation": "1"}
    message |= {"args": b"\x80\x05garbage", "kwargs": b"garbage"}
    if what != "undecodable":
        message |= {"function": "of_a_later_version", "args": b"\x80\x04).", "kwargs": b"\x80\x04}."}
    sent = (await redis.xadd("am:agent-memory:stream", message)).decode()
    for number in range(3):
        session = f"beside-{name}-{number}"
        assert (await http.post(f"/v1/working-memory/{session}/messages", json={"messages": said(session)})).status_code == 200
        await wait_until(all_there(redis, session, "discrete", ["-"] * 4), "work beside the message", 30)
    await wait_until(nothing_pending(redis), "an empty stream", 30)
    assert {place.name: place.starts for place in on.fleet.of("worker")} == starts
    if what == "undecodable":
        # Messages of the same delivery, or of workers that other tests killed, may be next to it.
        dead = [json.loads(entry)["id"] for entry in await redis.lrange(_KEYS.dead_messages, 0, -1)]
        assert dead.count(sent) == 1, "it is kept where an operator finds it"


async def test_sigterm_under_load_loses_no_acknowledged_write(on: Ground, redis: aioredis.Redis) -> None:
    figures, stop = Figures(), asyncio.Event()
    client = Client(on.fleet.api_urls, figures, stop)
    on.nursery.codes.clear()
    written: dict[str, list[str]] = {}

    async def write(writer: int) -> None:
        import random

        rng = random.Random(writer)
        number = 0
        while not stop.is_set():
            message = {
                "id": f"w{writer}-{number}",
                "role": "user",
                "content": f"Writer {writer} paid {number} euros",
                "created_at": "2026-01-02",
            }
            reply = await client.ask(rng, "POST", f"/v1/working-memory/load-{writer}/messages", json={"messages": [message]})
            assert reply.ok
            written.setdefault(f"load-{writer}", []).append(message["id"])
            number += 1

    writers = [asyncio.create_task(write(writer)) for writer in range(8)]

    async def acknowledged() -> int:
        return sum(map(len, written.values()))

    for round_ in (1, 2):
        target = await acknowledged() + 60

        async def more(target: int = target) -> bool:
            return await acknowledged() >= target

        await wait_until(more, "more acknowledged messages")
        for place in on.fleet.places.values():
            if place.arguments[0] in ("api", "worker"):
                assert on.fleet.kill(place, signal.SIGTERM)
        wanted = round_ * sum(place.arguments[0] in ("api", "worker") for place in on.fleet.places.values())

        async def ended(wanted: int = wanted) -> bool:
            return len(on.nursery.codes) >= wanted

        await wait_until(ended, "the end of all", 40)
        await on.fleet.ready()
    stop.set()
    await asyncio.gather(*writers)
    await client.close()
    # -15: stopped before it listened for signals.
    assert set(Counter(code for _, code in on.nursery.codes)) <= {0, -15}, on.nursery.codes
    assert not figures.violations, figures.violations
    assert set(figures.answers) <= {200, 503}, figures.answers

    async def idle() -> bool:
        return not any([await redis.zcard(_KEYS.due(kind)) for kind in (DueKind.SESSION, DueKind.EXTRACTION, DueKind.MEMORY)])

    await wait_until(idle, "an empty backlog", 120)
    for session, ids in written.items():
        stored = [decode_entry(raw).message.id for raw in await redis.lrange(_KEYS.session(sid(session)).messages, 0, -1)]
        assert stored == ids
        assert len(await memories(redis, session, "message")) == len(ids)
        assert len(await memories(redis, session, "discrete")) == len(ids)
