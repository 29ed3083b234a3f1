"""Compare prompts with and without profiles and blocks, and small profiles with large ones.

Run `python -m benchmarks sections`. Each user with a profile and two blocks has a counterpart with
the same facts and session but no blocks. Requests alternate between the two kinds of user, and each
question is asked once. The results are ratios, as in a comparison of two versions.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measurement.meter import Meter
from benchmarks.measurement.series import measure
from benchmarks.scenarios import Operation
from benchmarks.setup import corpus
from benchmarks.setup.http import Connection, connect, request
from benchmarks.setup.stack import Stack, running
from benchmarks.versions import row
from tests.support.waiting import wait_until

Say = Callable[[str], None]
PLAIN, KNOWN = "plain", "known"
_SESSION = "bench-sections"
# The maximum number of entries of each kind, so that large and small profiles give responses of the same length.
_SHOWN = 10
_BLOCKS = {
    "human": "Ada, 34, builds bridges; two children; speaks Dutch and English.",
    "task": "Find a house near the river. " * 10,
}


@dataclass(frozen=True)
class Plan:
    """The number of users of each kind, the facts per user, and the facts in one large profile."""

    users: int = 40
    facts: int = 20
    large: int = 2_000
    pairs: int = 9
    requests: int = 160
    concurrency: Sequence[int] = (1, 8)


async def compare(plan: Plan, say: Say) -> list[dict[str, Any]]:
    """Return a row for each comparison and concurrency.

    A row contains the figures for both sides and the median ratio with its upper bound. Raises
    RuntimeError if the server does not start, and AssertionError if profiles are not ready within a
    minute.
    """
    folder = Path(tempfile.mkdtemp(prefix="agent-memory-sections-"))
    try:
        async with running(folder, workers=0, fill=lambda base: _fill(base, plan)) as stack:
            say(f"{2 * plan.users} users of {plan.facts} facts each, one of {plan.large}")
            rows: list[dict[str, Any]] = []
            for name, operations in {
                f"prompt; with profile and {len(_BLOCKS)} blocks": [Operation("", _asker(plan, kind)) for kind in (PLAIN, KNOWN)],
                f"profile of {plan.facts} facts; of {plan.large:,}": [Operation("", _reader(user)) for user in (_user(KNOWN, 0), "large")],
            }.items():
                for concurrency in plan.concurrency:
                    rows.append(row(name, concurrency, await _pairs(stack, operations, concurrency, plan)))
                    say(f"{name}, {concurrency} at a time: {rows[-1]['cpu']['ratio']:.2f} of the CPU")
            return rows
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _pairs(stack: Stack, operations: Sequence[Operation], concurrency: int, plan: Plan) -> list[list[dict[str, float]]]:
    meter = Meter(stack.pids)
    pairs: list[list[dict[str, float]]] = []
    for pair in range(plan.pairs):
        rows: list[dict[str, float]] = [{}, {}]
        for turn in (0, 1) if pair % 2 == 0 else (1, 0):
            offset = (concurrency << 24) + pair * (plan.requests + 100)
            figures = await measure(
                stack.apis[0], operations[turn], meter, requests=plan.requests, concurrency=concurrency, offset=offset, warm=20
            )
            rows[turn] = {"cpu": figures["cpu_per_1000"]["api"], "p50": figures["p50_ms"]}
        pairs.append(rows)
    return pairs


def _user(kind: str, number: int) -> str:
    return f"{kind}-{number}"


def _asker(plan: Plan, kind: str) -> Callable[[int], bytes]:
    """Return a function that builds prompt requests, each with a new question.

    Requests ask for the profile if `kind` is `KNOWN`.
    """

    def nth(n: int) -> bytes:
        user = _user(kind, n % plan.users)
        body = {
            "query": corpus.question(n % plan.users, n % plan.facts, f"{kind} {n}"),
            "session": {"session_id": _SESSION, "user_id": user},
            "long_term_search": {"user_id": {"eq": user}, "limit": 10},
            **({"profile": {"tokens": 300}} if kind == KNOWN else {}),
        }
        return request("POST", "/v1/memory/prompt", json.dumps(body).encode())

    return nth


def _reader(user: str) -> Callable[[int], bytes]:
    return lambda _: request("GET", f"/v1/profile?user_id={user}&limit={_SHOWN}")


async def _fill(base: str, plan: Plan) -> None:
    connection = await connect(base)
    owners = [(_user(kind, number), number, plan.facts) for kind in (PLAIN, KNOWN) for number in range(plan.users)]
    for user, number, facts in [*owners, ("large", 0, plan.large)]:
        for first in range(0, facts, 100):
            numbers = range(first, min(first + 100, facts))
            memories = [{"id": f"{user}-{place}", "text": corpus.fact(number, place), "user_id": user} for place in numbers]
            await _send(connection, "POST", "/v1/long-term-memory/?wait=20", {"memories": memories, "deduplicate": False})
        messages = [corpus.message(user, place) for place in range(20)]
        await _send(connection, "PUT", f"/v1/working-memory/{_SESSION}", {"messages": messages, "user_id": user})
        if user.startswith(KNOWN):
            for label, value in _BLOCKS.items():
                await _send(connection, "PUT", f"/v1/blocks/{label}?user_id={user}", {"value": value})

    async def followed() -> bool:
        answers = [json.loads(await connection.expect(_reader(user)(0))) for user in ("large", _user(KNOWN, plan.users - 1))]
        return all(answer["static"] or answer["dynamic"] for answer in answers)

    await wait_until(followed, "the profiles")
    connection.close()


async def _send(connection: Connection, method: str, path: str, body: dict[str, Any]) -> None:
    await connection.expect(request(method, path, json.dumps(body).encode()))
