"""`python -m benchmarks.flood`: one tenant asks for far more than it may have; do the others notice?

Two tenants with keys of their own. The quiet one appends and searches steadily, first alone, then while the other one sends many times its
rate, searches for everything, writes sessions and messages that are far too long, and has work waiting. Prints the figures of both and
whether the promise holds: the quiet tenant's 95th percentile within 1.5 times of what it was alone, every answer of its 200, and each
refusal of the other's with a time to come back.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import uvloop

from benchmarks import corpus
from benchmarks.http import connect, request
from benchmarks.load import Driver
from benchmarks.stack import running
from benchmarks.verdict import Verdict

_MEMORIES = 1_000
_RATES = {"append": 20.0, "search": 10.0}
_PER_MINUTE = 1_800
_FLOOD = {"append": 150.0, "search": 50.0, "everything": 20.0, "long session": 2.0, "long message": 1.0}
_TIMES = 1.5
# Differences below this are the noise of the machine.
_NOISE_MS = 1.0


class Tenant:
    """What a tenant sends."""

    def __init__(self, driver: Driver, key: str) -> None:
        self.driver = driver
        self._key = key
        self._number = 0

    def _request(self, method: str, path: str, body: Any) -> bytes:
        return request(method, path, json.dumps(body).encode(), key=self._key)

    def _next(self) -> int:
        self._number += 1
        return self._number

    async def remember(self, count: int) -> None:
        """So many memories, twenty at a time."""
        for start in range(0, count, 20):
            memories = [{"id": f"m{n}", "text": corpus.fact(n // 100, n % 100), "user_id": "ada"} for n in range(start, start + 20)]
            await self.driver.ask("create", self._request("POST", "/v1/long-term-memory/", {"memories": memories}), time.perf_counter())

    async def append(self, due: float) -> None:
        """One message to one of twenty sessions."""
        number = self._next()
        message = {"role": "user", "content": f"{corpus.fact(3, number % 100)} It was message {number}."}
        path = f"/v1/working-memory/s{number % 20}-{number // 800}/messages"
        await self.driver.ask("append", self._request("POST", path, {"messages": [message], "user_id": "ada"}), due)

    async def search(self, due: float) -> None:
        """A question about one of the memories."""
        body = {"text": corpus.question(0, self._next() % 100), "user_id": {"eq": "ada"}, "limit": 10}
        await self.driver.ask("search", self._request("POST", "/v1/long-term-memory/search", body), due)

    async def everything(self, due: float) -> None:
        """As many memories as nobody may ask for, and then as many as one may."""
        limit = 1_000_000 if self._next() % 2 else 100
        await self.driver.ask("everything", self._request("POST", "/v1/long-term-memory/search", {"text": "what", "limit": limit}), due)

    async def long_session(self, due: float) -> None:
        """A session of hundreds of messages at once."""
        messages = [{"role": "user", "content": corpus.fact(5, n % 100)} for n in range(300)]
        path = f"/v1/working-memory/long-{self._next()}"
        await self.driver.ask("long session", self._request("PUT", path, {"messages": messages, "user_id": "ada"}), due)

    async def long_message(self, due: float) -> None:
        """A message of a megabyte."""
        body = {"messages": [{"role": "user", "content": "much " * 200_000}], "user_id": "ada"}
        await self.driver.ask("long message", self._request("POST", f"/v1/working-memory/much-{self._next()}/messages", body), due)


async def _key(base: str, operator: str, tenant: str) -> str:
    connection = await connect(base)
    made = await connection.expect(request("POST", "/v1/auth/tokens", json.dumps({"tenant": tenant}).encode(), key=operator))
    connection.close()
    return json.loads(made)["token"]


async def flood(seconds: float, folder: Path) -> dict[str, Any]:
    """The quiet tenant's figures alone and beside the flood, and the flood's."""
    operator = secrets.token_hex(32)
    limits = {"LIMIT_TENANTS": json.dumps({"loud": {"requests_per_minute": _PER_MINUTE, "requests_burst": 60, "memories": 20_000}})}
    async with running(folder, settings={"AUTH_MODE": "token", "AUTH_ADMIN_TOKEN": operator, **limits}) as stack:
        base = stack.apis[0]
        keys = {tenant: await _key(base, operator, tenant) for tenant in ("quiet", "loud")}
        quiet, loud = (Tenant(Driver(stack.apis), keys[tenant]) for tenant in ("quiet", "loud"))
        await quiet.remember(_MEMORIES)
        found: dict[str, Any] = {"asked": {"seconds": seconds, "quiet": _RATES, "loud": _FLOOD, "loud may per minute": _PER_MINUTE}}
        await _steadily(quiet, min(seconds, 10.0), _RATES)  # embeds the queries and warms everything up
        for phase in ("alone", "beside the flood"):
            quiet.driver = Driver(stack.apis)
            sent = [_steadily(quiet, seconds, _RATES)] + ([_steadily(loud, seconds, _FLOOD)] if phase != "alone" else [])
            await asyncio.gather(*sent)
            found[phase] = {kind: quiet.driver.tallies[kind].figures() for kind in _RATES}
        found["flood"] = {kind: tally.figures() for kind, tally in loud.driver.tallies.items()}
        return found


async def _steadily(tenant: Tenant, seconds: float, rates: dict[str, float]) -> None:
    acts: dict[str, Callable[[float], Coroutine[Any, Any, None]]] = {
        "append": tenant.append,
        "search": tenant.search,
        "everything": tenant.everything,
        "long session": tenant.long_session,
        "long message": tenant.long_message,
    }
    await asyncio.gather(*(tenant.driver.steadily(rate, seconds, acts[kind]) for kind, rate in rates.items()))
    await tenant.driver.answered()


def verdicts(found: dict[str, Any]) -> list[Verdict]:
    """Whether the quiet tenant was left in peace, and the loud one told when to come back."""
    quiet = [found[phase][kind] for phase in ("alone", "beside the flood") for kind in _RATES]
    wrong = sum(count for one in quiet for status, count in one["answers"].items() if status != 200) + sum(
        sum(one["broken connections"].values()) for one in quiet
    )
    said = [Verdict("every answer of the quiet tenant is 200", f"{wrong} are not", wrong == 0)]
    for kind in _RATES:
        alone, beside = found["alone"][kind]["p95_ms"], found["beside the flood"][kind]["p95_ms"]
        asked = f"the quiet tenant's p95 of {kind} within {_TIMES} times"
        said.append(Verdict(asked, f"{alone} ms alone, {beside} ms beside the flood", beside <= max(alone * _TIMES, alone + _NOISE_MS)))
    refused = sum(one["answers"].get(429, 0) for one in found["flood"].values())
    untimed = sum(one["refusals without Retry-After"] for one in found["flood"].values())
    errors = sum(count for one in found["flood"].values() for status, count in one["answers"].items() if status >= 500)
    said.append(
        Verdict("the flood is refused, each time with Retry-After", f"{refused} refused, {untimed} without", refused > 0 and untimed == 0)
    )
    said.append(Verdict("nothing of the flood is an error of ours", f"{errors} are", errors == 0))
    return said


def main() -> int:
    """Reads the arguments, runs, prints the figures as JSON and the verdicts; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flood", description=__doc__)
    parser.add_argument("--seconds", type=float, default=45.0, help="of each of the two phases")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="flood-") as folder:
        found = uvloop.run(flood(options.seconds, Path(folder)))
    said = verdicts(found)
    print(json.dumps(found, indent=1), *said, sep="\n")
    return 0 if all(verdict.holds for verdict in said) else 1


if __name__ == "__main__":
    sys.exit(main())
