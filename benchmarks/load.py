"""Load a server for minutes, or with twice its capacity.

Run `python -m benchmarks.load sustained|overload`. The command prints the figures, and whether each
criterion in rows L1 and L2 of docs/guarantees.md holds. The exit code is 1 if a criterion does not
hold.

Requests are sent on schedule, even if earlier requests are still waiting for a response. A
request's latency is measured from its scheduled time. Each query is sent once beforehand, so that
its embedding is cached and only the search is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvloop

from agent_memory.foundation.core import garbage_collection
from benchmarks.measurement.meter import Meter, children_seconds, percentile, rss_bytes
from benchmarks.reports.verdict import of_overload, of_sustained
from benchmarks.setup import corpus
from benchmarks.setup.http import Connection, request
from benchmarks.setup.preload import PER_USER, preload
from benchmarks.setup.stack import Stack, running

_QUERIES = 500
# The number of messages after which a conversation ends and a new one begins.
_MESSAGES_PER_SESSION = 40
_SESSIONS_AT_ONCE = 200
_DRAIN_SECONDS = 300.0
REFUSED = (429, 503)
# Like other clients, do not reuse a connection that was idle for longer, because the server may be closing it.
_IDLE_SECONDS = 30.0


@dataclass(frozen=True)
class Options:
    """The options for a run. Rates are per second."""

    seconds: float
    memories: int
    appends: float = 200.0
    searches: float = 50.0
    apis: int = 1
    workers: int = 1


class Answering(Connection):
    """A connection that records whether a response says when to retry."""

    def __init__(self) -> None:
        super().__init__()
        self.retry_after: bytes | None = None
        self.lost = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        super().connection_lost(exc)

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"retry-after":
            self.retry_after = value


async def _connect(base: str) -> Answering:
    parts = urlsplit(base)
    _, made = await asyncio.get_running_loop().create_connection(Answering, parts.hostname, parts.port)  # pyright: ignore[reportArgumentType]
    return made


@dataclass
class Tally:
    """Responses to one kind of request, with seconds since the scheduled time and the send time."""

    statuses: Counter[int] = field(default_factory=Counter)
    due: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    sent: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    without_time: int = 0
    broken: Counter[str] = field(default_factory=Counter)

    def add(self, other: Mapping[str, Any]) -> None:
        """Add the counts from another process's tally, parsed from JSON."""
        self.statuses.update({int(status): count for status, count in other["statuses"].items()})
        self.broken.update(other["broken"])
        self.without_time += other["without_time"]
        for own_seconds, other_seconds in ((self.due, other["due"]), (self.sent, other["sent"])):
            for status, seconds in other_seconds.items():
                own_seconds[int(status)] += seconds

    def figures(self) -> dict[str, Any]:
        """Return the figures for the report, with times in ms."""
        fine = self.due[200]
        refused = [seconds for status in REFUSED for seconds in self.sent[status]]
        return {
            "answers": dict(sorted(self.statuses.items())),
            "broken connections": dict(self.broken),
            "p50_ms": _ms(fine, 0.5),
            "p95_ms": _ms(fine, 0.95),
            "p99_ms": _ms(fine, 0.99),
            "max_ms": _ms(fine, 1.0),
            "sent_p99_ms": _ms(self.sent[200], 0.99),
            "refusal_p50_ms": _ms(refused, 0.5),
            "refusal_p95_ms": _ms(refused, 0.95),
            "refusal_p99_ms": _ms(refused, 0.99),
            "share of refusals within 100 ms": round(sum(one <= 0.1 for one in refused) / len(refused), 4) if refused else None,
            "refusals without Retry-After": self.without_time,
        }


def _ms(values: Sequence[float], share: float) -> float | None:
    return round(percentile(values, share) * 1000, 2) if values else None


class Driver:
    """Sends requests at set times. Each request in flight has its own connection."""

    def __init__(self, bases: Sequence[str]) -> None:
        self._bases = bases
        self._idle: list[tuple[Answering, float]] = []
        self._opened = 0
        self._under_way: set[asyncio.Task[None]] = set()
        self.tallies: dict[str, Tally] = defaultdict(Tally)
        self.most_under_way = 0

    async def connection(self) -> Answering:
        while self._idle:
            connection, since = self._idle.pop()
            if not connection.lost and time.perf_counter() - since < _IDLE_SECONDS:
                return connection
            connection.close()
        self._opened += 1
        return await _connect(self._bases[self._opened % len(self._bases)])

    async def ask(self, kind: str, raw: bytes, due: float) -> int:
        """Send a request. Return its status, or 0 if there was no response."""
        tally = self.tallies[kind]
        try:
            connection = await self.connection()
            connection.retry_after = None
            began = time.perf_counter()
            status, _ = await asyncio.wait_for(connection.send(raw), 60)
        except (OSError, TimeoutError) as error:
            tally.broken[type(error).__name__] += 1
            return 0
        ended = time.perf_counter()
        tally.statuses[status] += 1
        tally.due[status].append(ended - due)
        tally.sent[status].append(ended - began)
        tally.without_time += status in REFUSED and connection.retry_after is None
        self.give_back(connection)
        return status

    def give_back(self, connection: Answering) -> None:
        """Return a connection to the pool."""
        self._idle.append((connection, time.perf_counter()))

    def close(self) -> None:
        """Close the idle connections."""
        for connection, _ in self._idle:
            connection.close()
        self._idle.clear()

    async def steadily(self, rate: float, seconds: float, act: Callable[[float], Coroutine[Any, Any, None]], *, turn: int = 0) -> None:
        """Call `act(due)` at random intervals, `rate` times per second on average.

        The calls form a Poisson process that depends on `turn`.
        """
        rng = random.Random(rate + turn)
        due = began = time.perf_counter()
        while due < began + seconds:
            due += rng.expovariate(rate)
            if (wait := due - time.perf_counter()) > 0:
                await asyncio.sleep(wait)
            task = asyncio.create_task(act(due))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
            self.most_under_way = max(self.most_under_way, len(self._under_way))

    async def answered(self) -> None:
        """Wait until no requests are in flight."""
        while self._under_way:
            await asyncio.wait(self._under_way)


class Talk:
    """Creates a run's requests: appends to a changing set of sessions, and searches."""

    def __init__(self, driver: Driver, memories: int) -> None:
        self.driver = driver
        self._users = max(memories // PER_USER, 1)
        self._number = 0
        self.acknowledged: dict[str, list[str]] = defaultdict(list)
        """The ids of acknowledged messages, by session."""
        rng = random.Random(7)
        self._queries: list[bytes] = []
        for _ in range(_QUERIES):
            owner, place = rng.randrange(self._users), rng.randrange(PER_USER)
            body = {"text": corpus.question(owner, place), "user_id": {"eq": corpus.user(owner)}, "limit": 10}
            self._queries.append(request("POST", "/v1/long-term-memory/search", json.dumps(body).encode()))

    async def warm(self) -> None:
        """Send every query once, in small batches."""
        for start in range(0, len(self._queries), 20):
            await asyncio.gather(*(self.driver.ask("warm", raw, time.perf_counter()) for raw in self._queries[start : start + 20]))

    async def append(self, due: float) -> None:
        """Append a message to one of the current sessions."""
        self._number += 1
        number = self._number
        slot, generation = number % _SESSIONS_AT_ONCE, number // (_SESSIONS_AT_ONCE * _MESSAGES_PER_SESSION)
        session, user = f"load-{slot}-{generation}", corpus.user(slot % self._users)
        message = {
            "id": f"m{number}",
            "role": "user" if number % 2 else "assistant",
            "content": f"{corpus.fact(slot, number % PER_USER)} It was message {number}.",
            "created_at": "2026-06-01T12:00:00Z",
        }
        body = json.dumps({"messages": [message], "user_id": user}).encode()
        if await self.driver.ask("append", request("POST", f"/v1/working-memory/{session}/messages", body), due) == 200:
            self.acknowledged[f"{session}?user_id={user}"].append(message["id"])

    async def search(self, due: float) -> None:
        """Search with one of the queries."""
        self._number += 1
        await self.driver.ask("search", self._queries[self._number % len(self._queries)], due)

    async def lost(self) -> int:
        """Count acknowledged messages that are missing from sessions that have no summary."""
        missing = 0
        for place, ids in self.acknowledged.items():
            connection = await self.driver.connection()
            answer = json.loads(await connection.expect(request("GET", f"/v1/working-memory/{place}")))
            there = {message["id"] for message in answer["messages"]}
            self.driver.give_back(connection)
            missing += 0 if answer["context"] else len(set(ids) - there)
        return missing


async def _until_drained(stack: Stack) -> float | None:
    """Return the seconds until there is no pending work, or None after five minutes."""
    began = time.perf_counter()
    connection = await _connect(stack.apis[0])
    while time.perf_counter() - began < _DRAIN_SECONDS:
        work = json.loads(await connection.expect(request("GET", "/v1/ready")))["checks"]["work"]
        if not any(kind["pending"] for kind in work.values()):
            return round(time.perf_counter() - began, 1)
        await asyncio.sleep(0.25)
    return None


async def _watched(stack: Stack, samples: dict[str, list[int]], seconds: float) -> None:
    """Sample the resident memory of each process, about 200 times."""
    while True:
        for name, pids in stack.pids.items():
            samples[name].append(sum(rss_bytes(pid) for pid in pids))
        await asyncio.sleep(max(seconds / 200, 0.1))


def _growth(samples: Sequence[int]) -> float:
    """Return the growth in percent during the second half of the samples."""
    tenth = max(len(samples) // 10, 1)
    middle = samples[len(samples) // 2 : len(samples) // 2 + tenth]
    return round((sum(samples[-tenth:]) / tenth / (sum(middle) / len(middle)) - 1) * 100, 1)


def _alive(stack: Stack) -> bool:
    return all(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX" for pids in stack.pids.values() for pid in pids)


async def sustained(options: Options, folder: Path) -> dict[str, Any]:
    """Run L1: send requests at the given rates for the given time."""
    async with running(folder, apis=options.apis, workers=options.workers) as stack:
        filled = await preload(stack.redis_url, stack.environment, 0, options.memories)
        print(f"{options.memories} memories preloaded in {filled.seconds:.0f} s", file=sys.stderr, flush=True)
        driver = Driver(stack.apis)
        talk = Talk(driver, options.memories)
        await talk.warm()
        garbage_collection.settle()  # the senders' garbage collection must not affect the server's figures
        samples: dict[str, list[int]] = defaultdict(list)
        meter = Meter(stack.pids)
        meter.start()
        children = children_seconds(stack.pids["redis"][0])
        watching = asyncio.create_task(_watched(stack, samples, options.seconds))
        await asyncio.gather(
            driver.steadily(options.appends, options.seconds, talk.append), driver.steadily(options.searches, options.seconds, talk.search)
        )
        await driver.answered()
        watching.cancel()
        used = meter.stop()
        children = children_seconds(stack.pids["redis"][0]) - children
        drained = await _until_drained(stack)
        return {
            "options": vars(options),
            "append": driver.tallies["append"].figures(),
            "search": driver.tallies["search"].figures(),
            "lost": await talk.lost(),
            "drained_seconds": drained,
            "rss_mb": {name: round(values[-1] / 2**20, 1) for name, values in samples.items()},
            "rss_growth_last_half_percent": {name: _growth(values) for name, values in samples.items()},
            "cpu_share": {name: round(value / used.wall, 3) for name, value in {**used.cpu, "redis' children": children}.items()},
            "foreign_cpu_share": used.foreign,
            "all processes alive": _alive(stack),
        }


async def overload(options: Options, folder: Path) -> dict[str, Any]:
    """Run L2: measure the server's capacity, then send twice as many requests."""
    async with running(folder, apis=options.apis, workers=options.workers) as stack:
        await preload(stack.redis_url, stack.environment, 0, options.memories)
        driver = Driver(stack.apis)
        talk = Talk(driver, options.memories)
        await talk.warm()
        capacity = await _capacity(talk, min(options.seconds, 5.0))
        driver = talk.driver = Driver(stack.apis)
        garbage_collection.settle()  # the senders' garbage collection must not affect the server's figures
        print(f"capacity {capacity:.0f} requests/s", file=sys.stderr, flush=True)
        await asyncio.gather(
            driver.steadily(capacity * 1.6, options.seconds, talk.append), driver.steadily(capacity * 0.4, options.seconds, talk.search)
        )
        await driver.answered()
        drained = await _until_drained(stack)
        return {
            "options": vars(options),
            "capacity_per_second": round(capacity),
            "offered_per_second": round(2 * capacity),
            "most under way": driver.most_under_way,
            "append": driver.tallies["append"].figures(),
            "search": driver.tallies["search"].figures(),
            "lost": await talk.lost(),
            "drained_seconds": drained,
            "all processes alive": _alive(stack),
        }


async def _capacity(talk: Talk, seconds: float) -> float:
    """Return the requests per second of 64 clients that wait for each response.

    Four in five requests are appends.
    """
    until = time.perf_counter() + seconds
    request_count = 0

    async def client(number: int) -> None:
        nonlocal request_count
        while (now := time.perf_counter()) < until:
            await (talk.search if (number + request_count) % 5 == 0 else talk.append)(now)
            request_count += 1

    await asyncio.gather(*(client(number) for number in range(64)))
    return sum(talk.driver.tallies[kind].statuses[200] for kind in ("append", "search")) / seconds


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("what", choices=["sustained", "overload"])
    parser.add_argument("--seconds", type=float, default=None, help="length of the run (default: 600, or 20 for overload)")
    parser.add_argument("--memories", type=int, default=100_000, help="memories in the store at the start")
    parser.add_argument("--appends", type=float, default=200.0, help="appends per second, for sustained")
    parser.add_argument("--searches", type=float, default=50.0, help="searches per second, for sustained")
    parser.add_argument("--apis", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=None, help="file to which the figures are written, too")
    arguments = parser.parse_args()
    act, judge = (sustained, of_sustained) if arguments.what == "sustained" else (overload, of_overload)
    seconds = arguments.seconds or (600.0 if act is sustained else 20.0)
    options = Options(seconds, arguments.memories, arguments.appends, arguments.searches, arguments.apis, arguments.workers)
    with tempfile.TemporaryDirectory(prefix="load-") as folder:
        result = uvloop.run(act(options, Path(folder)))
    text = json.dumps(result, indent=1)
    verdicts = judge(result)
    print(text, *verdicts, sep="\n")
    if arguments.out:
        arguments.out.write_text(text + "\n")
    return 0 if all(verdict.holds for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
