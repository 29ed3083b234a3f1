"""Measure how long the event loop was blocked, in CPU time."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress


class Heartbeat:
    """Measures the longest turn of the event loop."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def run(self) -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            self.longest = max(self.longest, now - last)
            last = now


@asynccontextmanager
async def heartbeat() -> AsyncGenerator[Heartbeat]:
    """Measure the running event loop during the block."""
    beat = Heartbeat()
    # Disable the collection of earlier tests' objects, which takes up to a second.
    gc.collect()
    gc.freeze()
    running = asyncio.create_task(beat.run())
    try:
        yield beat
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        gc.unfreeze()


def reference_seconds() -> float:
    """Return this machine's time for a fixed loop, to scale CPU limits."""
    times: list[float] = []
    for _ in range(5):
        began = time.thread_time()
        sum(map(ord, "x" * 1_000_000))
        times.append(time.thread_time() - began)
    return min(times)
