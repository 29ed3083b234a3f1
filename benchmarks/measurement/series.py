"""Measure a series of requests over persistent connections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks.measurement.meter import Meter, figures
from benchmarks.scenarios import Operation
from benchmarks.setup.http import connect


async def measure(
    base: str,
    operation: Operation,
    meter: Meter,
    *,
    requests: int,
    concurrency: int,
    offset: int,
    warm: int,
    warmed: Callable[[], Awaitable[object]] | None = None,
) -> dict[str, Any]:
    """Send `warm` requests as a warm-up, await `warmed`, then measure `requests` requests.

    `offset` is the number of the first request. The result contains the figures, and each request's
    `seconds` in completion order.
    """
    connections = [await connect(base) for _ in range(concurrency)]
    for n in range(warm):
        await connections[n % concurrency].expect(operation.nth(offset + n))
    if warmed is not None:
        await warmed()
    waiting = iter([operation.nth(offset + warm + n) for n in range(requests)])
    seconds = list[float]()

    async def work(number: int) -> None:
        for body in waiting:
            began = time.perf_counter()
            await connections[number].expect(body)
            seconds.append(time.perf_counter() - began)

    meter.start()
    await asyncio.gather(*(work(number) for number in range(concurrency)))
    used = meter.stop()
    for connection in connections:
        connection.close()
    return {**figures(seconds, used.wall, dict(used.cpu), used.foreign), "seconds": seconds}
