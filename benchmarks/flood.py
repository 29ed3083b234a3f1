"""Check that a flood from one tenant does not slow down others: `python -m benchmarks.flood`.

There are two tenants, each with its own API key. The quiet tenant appends and searches at a steady
rate in short slices. The loud tenant sends far more requests: it runs searches with the highest
limits, writes oversized sessions and messages, and creates a backlog of background work.

Each round has one slice with the flood and one without. Both slices send the same requests at the
same intervals. The order alternates between rounds to even out changes in the machine's speed.
Each slice starts once there is no pending work.

The command prints both tenants' figures, and checks these criteria:

- With the flood, the quiet tenant's 95th percentile is at most 1.5 times as high as without it. All
  of its responses are 200.
- The flood was sent in full, and each rejection says when to retry.

A separate process sends the flood. It runs only on idle cores, so it does not take CPU time from
the server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvloop

from agent_memory.foundation.core import garbage_collection
from benchmarks.load import REFUSED, Driver, Tally
from benchmarks.measurement.meter import Meter, percentile
from benchmarks.reports.verdict import Verdict
from benchmarks.setup import corpus
from benchmarks.setup.http import connect, request
from benchmarks.setup.stack import child_environment, running

_MEMORIES = 1_000
_RATES = {"append": 20.0, "search": 10.0}
_PER_MINUTE = 1_800
_FLOOD = {"append": 150.0, "search": 50.0, "everything": 20.0, "long session": 2.0, "long message": 1.0}
_ROUNDS = 6
_SLICE_SECONDS = 12.0
_SIDES = ("alone", "beside the flood")
# The measurement counts only if the server answered at least this share of the planned flood.
_IN_FULL = 0.95
_TIMES = 1.5
# Smaller differences are noise.
_NOISE_MS = 1.0
_MODULE = "benchmarks.flood"


class Tenant:
    """Sends requests for one tenant."""

    def __init__(self, driver: Driver, key: str) -> None:
        self.driver = driver
        self._key = key
        self._number = 0
        messages = [{"role": "user", "content": corpus.fact(5, n % 100)} for n in range(300)]
        self._long_session = json.dumps({"messages": messages, "user_id": "ada"}).encode()
        self._long_message = json.dumps({"messages": [{"role": "user", "content": "much " * 200_000}], "user_id": "ada"}).encode()

    def _request(self, method: str, path: str, body: Any) -> bytes:
        return request(method, path, json.dumps(body).encode(), key=self._key)

    def _next(self) -> int:
        self._number += 1
        return self._number

    async def remember(self, count: int) -> None:
        """Create `count` memories in batches of 20."""
        for start in range(0, count, 20):
            memories = [{"id": f"m{n}", "text": corpus.fact(n // 100, n % 100), "user_id": "ada"} for n in range(start, start + 20)]
            await self.driver.ask("create", self._request("POST", "/v1/long-term-memory/", {"memories": memories}), time.perf_counter())

    async def append(self, due: float) -> None:
        """Append a message to one of 20 sessions."""
        number = self._next()
        message = {"role": "user", "content": f"{corpus.fact(3, number % 100)} It was message {number}."}
        path = f"/v1/working-memory/s{number % 20}-{number // 800}/messages"
        await self.driver.ask("append", self._request("POST", path, {"messages": [message], "user_id": "ada"}), due)

    async def search(self, due: float) -> None:
        """Search for one of the memories."""
        body = {"text": corpus.question(0, self._next() % 100), "user_id": {"eq": "ada"}, "limit": 10}
        await self.driver.ask("search", self._request("POST", "/v1/long-term-memory/search", body), due)

    async def everything(self, due: float) -> None:
        """Search with the maximum limit, or every other time with a limit far above it."""
        limit = 1_000_000 if self._next() % 2 else 100
        await self.driver.ask("everything", self._request("POST", "/v1/long-term-memory/search", {"text": "what", "limit": limit}), due)

    async def long_session(self, due: float) -> None:
        """Store a session with hundreds of messages."""
        path = f"/v1/working-memory/long-{self._next()}"
        await self.driver.ask("long session", request("PUT", path, self._long_session, key=self._key), due)

    async def long_message(self, due: float) -> None:
        """Append a 1 MB message."""
        path = f"/v1/working-memory/much-{self._next()}/messages"
        await self.driver.ask("long message", request("POST", path, self._long_message, key=self._key), due)


async def _key(base: str, operator: str, tenant: str) -> str:
    connection = await connect(base)
    made = await connection.expect(request("POST", "/v1/auth/tokens", json.dumps({"tenant": tenant}).encode(), key=operator))
    connection.close()
    return json.loads(made)["token"]


async def flood(rounds: int, seconds: float, folder: Path) -> dict[str, Any]:
    """Measure the quiet tenant with and without the flood, and return both tenants' figures.

    Each kind has `rounds` slices of `seconds` each.
    """
    operator = secrets.token_hex(32)
    limits = {"LIMIT_TENANTS": json.dumps({"loud": {"requests_per_minute": _PER_MINUTE, "requests_burst": 60, "memories": 20_000}})}
    async with running(folder, settings={"AUTH_MODE": "token", "AUTH_ADMIN_TOKEN": operator, **limits}) as stack:
        base = stack.apis[0]
        keys = {tenant: await _key(base, operator, tenant) for tenant in ("quiet", "loud")}
        quiet = Tenant(Driver(stack.apis), keys["quiet"])
        await quiet.remember(_MEMORIES)
        await _steadily(quiet, 10.0, _RATES)  # embed the queries and fill the caches
        garbage_collection.settle()  # the sender's garbage collection must not affect the server's figures
        drivers = {side: Driver(stack.apis) for side in _SIDES}
        by_round: dict[str, list[float]] = {kind: [] for kind in _RATES}
        used: dict[str, dict[str, float]] = {side: defaultdict(float) for side in _SIDES}
        loud: dict[str, Tally] = defaultdict(Tally)
        async with _sender(base, keys["loud"]) as sender:
            meter = Meter({**stack.pids, "flood": [sender.pid]})
            for number in range(rounds):
                answered = {side: {kind: len(drivers[side].tallies[kind].due[200]) for kind in _RATES} for side in _SIDES}
                for side in _SIDES if number % 2 == 0 else _SIDES[::-1]:
                    await _wait_for_work(base, operator)
                    quiet.driver = drivers[side]
                    async with _flooding(sender, seconds, number, loud if side != "alone" else None):
                        meter.start()
                        await _steadily(quiet, seconds, _RATES, turn=number)
                        slice_used = meter.stop()
                    for name, share in {**slice_used.cpu, "others": slice_used.foreign * slice_used.wall}.items():
                        used[side][name] += share / slice_used.wall / rounds
                for kind, ratios in by_round.items():
                    alone, beside = (percentile(drivers[side].tallies[kind].due[200][answered[side][kind] :], 0.95) for side in _SIDES)
                    ratios.append(round(beside / alone, 2))
        result: dict[str, Any] = {
            "options": {"rounds": rounds, "seconds": seconds, "quiet": _RATES, "loud": _FLOOD, "loud may per minute": _PER_MINUTE}
        }
        for side in _SIDES:
            result[side] = {kind: drivers[side].tallies[kind].figures() for kind in _RATES}
            result[side]["cpu_share"] = {name: round(share, 3) for name, share in used[side].items()}
        result["p95 by round, times"] = by_round
        result["flood"] = {kind: tally.figures() for kind, tally in loud.items()}
        return result


async def _wait_for_work(base: str, operator: str) -> None:
    """Wait until background work is done, so that it does not slow down the next slice."""
    connection = await connect(base)
    while True:
        work = json.loads(await connection.expect(request("GET", "/v1/ready", key=operator)))["checks"]["work"]
        if not any(kind["pending"] for kind in work.values()):
            break
        await asyncio.sleep(0.25)
    connection.close()


@asynccontextmanager
async def _sender(base: str, key: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Start the sender process, which stays idle until `_flooding` starts the flood."""
    sender = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        _MODULE,
        "--as-flood",
        json.dumps({"base": base, "key": key}),
        env=child_environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**26,
    )
    assert sender.stdin is not None
    assert sender.stdout is not None
    try:
        await sender.stdout.readline()  # it has started
        yield sender
    finally:
        sender.stdin.close()
        await sender.wait()


@asynccontextmanager
async def _flooding(sender: asyncio.subprocess.Process, seconds: float, number: int, into: dict[str, Tally] | None) -> AsyncGenerator[None]:
    """Run the flood during the `with` block, and add its figures to `into`.

    If `into` is None, run no flood.
    """
    if into is None:
        yield
        return
    assert sender.stdin is not None
    assert sender.stdout is not None
    sender.stdin.write(json.dumps({"seconds": seconds, "number": number}).encode() + b"\n")
    await sender.stdout.readline()  # it has started
    yield
    for kind, tally in json.loads(await sender.stdout.readline()).items():
        into[kind].add(tally)


async def _be_the_flood(target: dict[str, Any]) -> None:
    """Send a flood for each line on stdin, and report the start and the results."""
    _give_way()
    garbage_collection.settle()
    loud = Tenant(Driver([target["base"]]), target["key"])
    print("ready", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        turn = json.loads(line)
        loud.driver = Driver([target["base"]])
        print("begun", flush=True)
        await _steadily(loud, turn["seconds"], _FLOOD, turn=turn["number"])
        print(json.dumps({kind: vars(tally) for kind, tally in loud.driver.tallies.items()}), flush=True)
        loud.driver.close()


def _give_way() -> None:
    """Run this process only when the CPU is otherwise idle."""
    os.nice(19)
    if sys.platform == "linux":
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


async def _steadily(tenant: Tenant, seconds: float, rates: dict[str, float], *, turn: int = 0) -> None:
    acts: dict[str, Callable[[float], Coroutine[Any, Any, None]]] = {
        "append": tenant.append,
        "search": tenant.search,
        "everything": tenant.everything,
        "long session": tenant.long_session,
        "long message": tenant.long_message,
    }
    await asyncio.gather(*(tenant.driver.steadily(rate, seconds, acts[kind], turn=turn) for kind, rate in rates.items()))
    await tenant.driver.answered()


def verdicts(result: dict[str, Any]) -> list[Verdict]:
    """Check the quiet tenant's responses, the flood, and the rejections against the criteria."""
    quiet = [result[side][kind] for side in _SIDES for kind in _RATES]
    wrong = sum(count for one in quiet for status, count in one["answers"].items() if status != 200) + sum(
        sum(one["broken connections"].values()) for one in quiet
    )
    judged = [Verdict("every answer of the quiet tenant is 200", f"{wrong} are not", wrong == 0)]
    for kind in _RATES:
        alone, beside = result["alone"][kind]["p95_ms"], result["beside the flood"][kind]["p95_ms"]
        criterion = f"the quiet tenant's p95 of {kind} within {_TIMES} times"
        judged.append(
            Verdict(criterion, f"{alone} ms alone, {beside} ms beside the flood", beside <= max(alone * _TIMES, alone + _NOISE_MS))
        )
    refused = sum(one["answers"].get(status, 0) for one in result["flood"].values() for status in REFUSED)
    untimed = sum(one["refusals without Retry-After"] for one in result["flood"].values())
    sent, due = sum(sum(one["answers"].values()) for one in result["flood"].values()), _due(result["options"])
    judged.append(Verdict("the whole flood was sent", f"{sent} answers to {due} planned requests", sent >= due * _IN_FULL))
    errors = sum(
        count for one in result["flood"].values() for status, count in one["answers"].items() if status >= 500 and status not in REFUSED
    )
    judged.append(
        Verdict(
            "the server refuses the flood, each time with Retry-After",
            f"{refused} refused, {untimed} without",
            refused > 0 and untimed == 0,
        )
    )
    judged.append(Verdict("no request of the flood causes a server error", f"{errors} errors", errors == 0))
    return judged


def _due(plan: dict[str, Any]) -> int:
    """Return the expected number of requests in a complete flood."""
    return round(sum(plan["loud"].values()) * plan["seconds"] * plan["rounds"])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flood", description=__doc__)
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="number of rounds, each with a slice alone and one during the flood")
    parser.add_argument("--seconds", type=float, default=_SLICE_SECONDS, help="length of each slice")
    parser.add_argument("--as-flood", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_flood:
        uvloop.run(_be_the_flood(json.loads(options.as_flood)))
        return 0
    with tempfile.TemporaryDirectory(prefix="flood-") as folder:
        result = uvloop.run(flood(options.rounds, options.seconds, Path(folder)))
    judged = verdicts(result)
    print(json.dumps(result, indent=1), *judged, sep="\n")
    return 0 if all(verdict.holds for verdict in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
