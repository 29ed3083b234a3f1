"""Run processes under load, inject faults, heal them, and check the data."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis.asyncio as aioredis

from agent_memory.foundation.llm.profiles import profile_of
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.search.indexes import VectorSpec
from tests.registrations import registrations
from tests.support.cli import ROOT
from tests.support.waiting import wait_until
from tests.system.faults.actors import ErasedActor, KeyedActor
from tests.system.faults.block_actors import BlockActor
from tests.system.faults.chaos import PROCESS_KILLS, REDIS_KILLS, Chaos
from tests.system.faults.derived import derived_state, differences, order_rebuilds
from tests.system.faults.fleet import Fleet, Member, Nursery, environment, free_port, redis_url, until_listening
from tests.system.faults.invariants import ENDING, Checker, Findings
from tests.system.faults.journal import Journal
from tests.system.faults.proxy import Proxy
from tests.system.faults.workload import Actor, Client, Figures, MemoryActor, SessionActor, SharedWriter

DIMENSIONS = 64
LEASE_SECONDS = 3.0
MODEL = "text-embedding-lookalike"

# Short leases and pauses, so that a killed process's work is claimed during the run; a small window, so that summaries occur.
SETTINGS = {
    "WORKER_LEASE_SECONDS": str(LEASE_SECONDS),
    "WORKER_REDELIVERY_TIMEOUT_SECONDS": "3",
    "WORKER_RETRY_BASE_SECONDS": "0.2",
    "WORKER_RETRY_MAX_SECONDS": "3",
    "WORKER_MAX_ATTEMPTS": "20",
    "WORKER_CONCURRENCY": "20",
    "EXTRACTION_DEBOUNCE_SECONDS": "0.5",
    "REDIS_COMMAND_TIMEOUT_SECONDS": "3",
    "REQUEST_TIMEOUT_SECONDS": "10",
    "SHUTDOWN_GRACE_SECONDS": "5",
    "MODEL_TIMEOUT_SECONDS": "3",
    "COMPACTION_EVERY_MINUTES": "0",
    "DEFAULT_CONTEXT_WINDOW": "512",
    "EMBEDDING_MODEL": MODEL,
    "EMBEDDING_DIMENSIONS": str(DIMENSIONS),
    "OPENAI_API_KEY": "sk-faults-0000",
    "LOG_LEVEL": "WARNING",
}


@dataclass(frozen=True)
class Plan:
    """The options for a run.

    `pause` is the mean time between faults. `rate` is the total target in requests per second.
    """

    seed: str
    seconds: float
    folder: Path
    apis: int = 2
    workers: int = 3
    users: int = 4
    sessions: int = 3
    writers: int = 4
    keepers: int = 4
    keyed: int = 2
    erased: int = 6
    editors: int = 2
    kills: int = 0
    """With `kills` or `redis_kills`, inject only kill -9, up to this many kills of processes and of Redis."""
    redis_kills: int = 0
    writes: int = 0
    """A busy machine does less in the same time: the run continues until this many writes are acknowledged."""
    durability: str = "everysec"
    rate: float = 60.0
    pause: float = 1.0
    drain_seconds: float = 180.0


@dataclass
class Outcome:
    """The results of a run."""

    plan: Plan
    figures: Figures
    findings: Findings
    faults: dict[str, int] = field(default_factory=dict[str, int])
    acknowledged: int = 0
    unacknowledged: int = 0
    retried: int = 0
    drained_seconds: float = 0.0
    starts: dict[str, int] = field(default_factory=dict[str, int])
    deaths: list[str] = field(default_factory=list[str])
    fault_log: list[str] = field(default_factory=list[str])
    skewed: bool = False

    @property
    def violations(self) -> list[str]:
        return [*self.figures.violations, *self.findings.violations, *self.deaths]

    def summary(self) -> dict[str, Any]:
        """Return the figures to print and to save with `--json`."""
        figures, found = self.figures, self.findings
        return {
            "seed": self.plan.seed,
            "seconds": self.plan.seconds,
            "clocks wrong by an hour": self.skewed,
            "kill -9 of processes": sum(self.faults.get(name, 0) for name in PROCESS_KILLS),
            "kill -9 of Redis": sum(self.faults.get(name, 0) for name in REDIS_KILLS),
            "faults injected": sum(self.faults.values()),
            "faults": dict(sorted(self.faults.items())),
            "requests": figures.requests,
            "answers": {str(status): count for status, count in sorted(figures.answers.items())},
            "5xx by code": dict(figures.codes),
            "requests without an answer": figures.no_answer,
            "hang-ups": figures.hangups,
            "slowest answer (s)": round(figures.slowest, 2),
            "writes acknowledged": self.acknowledged,
            "writes retried": self.retried,
            "writes unacknowledged": self.unacknowledged,
            "lost": len(found.lost),
            "duplicated": len(found.duplicated),
            "resurrected": len(found.resurrected),
            "wrong": len(found.wrong),
            "seen by clients": len(figures.violations),
            "given up": found.explained,
            "backlog empty after (s)": round(self.drained_seconds, 1),
            "stored": dict(found.counts),
            "process starts": self.starts,
            "violations": self.violations[:100],
        }


@asynccontextmanager
async def model_server(port: int) -> AsyncGenerator[str]:
    """Run the look-alike in a separate process and yield its URL without /v1."""
    command = [sys.executable, "-m", "tests.system.faults.model_server", str(port), str(DIMENSIONS)]
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE, stdout=-3, env=environment(), cwd=ROOT)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        assert process.stdin is not None
        process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 10)
        if process.returncode is None:
            process.kill()
            await process.wait()


@dataclass
class Ground:
    """A run's processes and proxies."""

    fleet: Fleet
    nursery: Nursery
    redis: Proxy
    model: Proxy
    model_url: str
    data_dir: Path
    redis_port: int

    def direct(self) -> aioredis.Redis:
        """Connect to Redis without the proxy."""
        return aioredis.Redis.from_url(redis_url(self.data_dir, self.redis_port), protocol=3)


@asynccontextmanager
async def ground(folder: Path, *, apis: int, workers: int, skewed: bool = False, **settings: str) -> AsyncGenerator[Ground]:
    """Start everything in `folder`, and stop it on exit."""
    folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - before anything runs
    data_dir = folder / "redis"
    redis_port, model_port = free_port(), free_port()
    async with AsyncExitStack() as stack:
        model_url = await stack.enter_async_context(model_server(model_port))
        nursery = await stack.enter_async_context(Nursery(folder).running())
        redis = await stack.enter_async_context(Proxy(redis_port).running())
        model = await stack.enter_async_context(Proxy(model_port).running())
        keeper = Member("redis", ("redis", "--data-dir", str(data_dir), "--port", str(redis_port)), {}, redis_port)
        await stack.enter_async_context(Fleet(nursery, [keeper]).running())
        await until_listening(model_port)
        shared = {
            **SETTINGS,
            "REDIS_URL": redis_url(data_dir, redis.port),
            "OPENAI_BASE_URL": f"http://127.0.0.1:{model.port}/v1",
            **settings,
        }
        places: list[Member] = []
        # Every second process has a clock that is wrong by an hour.
        for number in range(apis):
            port = free_port()
            places.append(Member(f"api{number}", ("api", "--port", str(port)), shared, port, skew=(0, 3600)[number % 2] if skewed else 0))
        for number in range(workers):
            places.append(Member(f"worker{number}", ("worker",), shared, skew=(0, 3600, -3600)[number % 3] if skewed else 0))
        fleet = await stack.enter_async_context(Fleet(nursery, places).running())
        fleet.places["redis"] = keeper
        stack.callback(fleet.places.pop, "redis")
        await fleet.ready()
        yield Ground(fleet, nursery, redis, model, model_url, data_dir, redis_port)


async def run(plan: Plan) -> Outcome:
    """Run a plan, and leave the journal, logs and Redis data in its folder."""
    figures = Figures()
    journal = Journal(plan.folder / "journal.jsonl")
    async with ground(plan.folder, apis=plan.apis, workers=plan.workers, skewed=True, DURABILITY=plan.durability) as on:
        stop = asyncio.Event()
        client = Client(on.fleet.api_urls, figures, stop)
        actors = _actors(plan, client, journal, figures)
        chaos = Chaos(plan.seed, on.fleet, on.redis, on.model, on.model_url, LEASE_SECONDS, plan.pause, (plan.kills, plan.redis_kills))
        acting = [asyncio.create_task(actor.run(stop, len(actors) / plan.rate)) for actor in actors]
        raging = asyncio.create_task(chaos.run())
        await asyncio.wait({raging, *acting}, timeout=plan.seconds, return_when=asyncio.FIRST_COMPLETED)
        until = time.monotonic() + 4 * plan.seconds
        while journal.acknowledged < plan.writes and time.monotonic() < until and not raging.done():
            await asyncio.wait({raging, *acting}, timeout=0.5, return_when=asyncio.FIRST_EXCEPTION)
        raging.cancel()
        enough = chaos.enough
        await asyncio.gather(raging, return_exceptions=True)
        await chaos.heal()
        figures.violations += [] if enough else [f"only {dict(chaos.injected)} within {plan.seconds:.0f} s"]
        stop.set()
        ended, late = await asyncio.wait(acting, timeout=60)
        for task in late:
            task.cancel()
        figures.violations += [f"an actor did not end: {late}"] if late else []
        figures.violations += [f"an actor failed: {task.exception()!r}" for task in ended if task.exception()]
        await client.close()
        journal.close()
        begun = time.monotonic()
        direct = on.direct()
        try:
            await _drained(direct, figures, plan.drain_seconds)
            drained = time.monotonic() - begun
            checker = Checker(direct, journal.path, VectorSpec(MODEL, DIMENSIONS, profile=profile_of(MODEL).digest))
            findings = await checker.check()
            before = await derived_state(direct)
            await order_rebuilds(on.fleet.api_urls[0], _owners(actors))
            await _drained(direct, figures, plan.drain_seconds)
            findings.wrong += differences(before, await derived_state(direct))
            findings.counts["profiles and timelines"] = len({":".join(name.split(":")[:2]) for name in before})
        finally:
            await direct.aclose()
        outcome = Outcome(plan, figures, findings, dict(chaos.injected), drained_seconds=drained, fault_log=chaos.log)
        outcome.acknowledged = checker.expected.acknowledged
        outcome.unacknowledged = checker.expected.unacknowledged
        outcome.retried = checker.expected.retried
        outcome.skewed = on.nursery.can_skew
        outcome.starts = {name: place.starts for name, place in on.fleet.places.items()}
        # Expected ends: by a signal of ours, in order, or because Redis was down at the start. Any other end is a crash.
        outcome.deaths = [f"{name} ended by itself with exit code {code}" for name, code in on.nursery.codes if code not in (-15, -9, 0, 1)]
        return outcome


def _actors(plan: Plan, client: Client, journal: Journal, figures: Figures) -> list[Actor]:
    common: tuple[str, Client, Journal, Figures] = (plan.seed, client, journal, figures)
    actors: list[Actor] = []
    for user in range(plan.users):
        actors += [SessionActor(f"u{user}-s{number}", *common, user=f"user-{user}") for number in range(plan.sessions)]
    actors += [SharedWriter(f"w{number}", *common, session=f"shared-{number % 2}") for number in range(plan.writers)]
    actors += [MemoryActor(f"k{number}", *common, user=f"keeper-{number}") for number in range(plan.keepers)]
    actors += [KeyedActor(f"q{number}", *common) for number in range(plan.keyed)]
    actors += [ErasedActor(f"e{number}", *common) for number in range(plan.erased)]
    actors += [actor for one in registrations() for actor in one.fault_actors(common)]
    actors += [BlockActor(f"b{number}", *common) for number in range(plan.editors)]
    return actors


def _owners(actors: Sequence[Actor]) -> list[dict[str, str]]:
    """Return the owners who may have profiles and timelines."""
    scopes = [actor.scope for actor in actors if isinstance(actor, SessionActor)]
    scopes += [{"user_id": actor.user} for actor in actors if isinstance(actor, MemoryActor)]
    return [dict(items) for items in dict.fromkeys(tuple(scope.items()) for scope in scopes)]


async def _drained(client: aioredis.Redis, figures: Figures, seconds: float) -> None:
    """Wait until no work is left, and record a violation if that takes longer than `seconds`."""
    keys = Keys()

    async def nothing_left() -> bool:
        left = [await client.zcard(keys.due(kind)) for kind in ENDING]
        stream = [key async for key in client.scan_iter(match="*agent-memory*:stream", count=1000)]
        return not any(left) and not any([await client.xlen(key) for key in stream])

    try:
        await wait_until(nothing_left, "an empty backlog", seconds)
    except AssertionError as error:
        left = {kind.value: await client.zcard(keys.due(kind)) for kind in ENDING}
        figures.violations.append(f"{error}: {left}, {await _waiting_work(client, keys)}")


async def _waiting_work(client: aioredis.Redis, keys: Keys) -> list[str]:
    """Describe each remaining task with its due time, attempts and docket state."""
    seconds, _ = await client.time()
    said: list[str] = []
    for kind in ENDING:
        for member, due in await client.zrange(keys.due(kind), 0, 4, withscores=True):
            name = f"{kind.value}:{member.decode()}"
            runs = [await client.hgetall(key) async for key in client.scan_iter(match=f"*agent-memory*:runs:{name}*", count=1000)]
            known = [{field: value[:80] for field, value in run.items() if field != b"kwargs"} for run in runs]
            said.append(f"{name} due in {due / 1000 - seconds:.0f} s, tries {await client.hget(keys.tries(kind), member)}, docket {known}")
    async for stream in client.scan_iter(match="*agent-memory*:stream", count=1000):
        for group in await client.xinfo_groups(stream):
            pending = await client.xpending_range(stream, group["name"], "-", "+", 5)
            said.append(f"{await client.xlen(stream)} messages, pending {pending}")
    return said


def show(outcome: Outcome) -> str:
    return json.dumps(outcome.summary(), indent=2, ensure_ascii=False)
