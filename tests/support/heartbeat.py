"""Measure how long a test's event loop was blocked, in CPU seconds of its thread, so a busy machine adds nothing."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress


class Heartbeat:
    """`longest` is the longest piece of work between two turns of the loop."""

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
    """Watch the event loop that runs this coroutine."""
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
    """Return this machine's time for a plain loop over a megabyte (typically 0.05 s), to scale CPU limits."""
    times: list[float] = []
    for _ in range(5):
        began = time.thread_time()
        sum(map(ord, "x" * 1_000_000))
        times.append(time.thread_time() - began)
    return min(times)
