"""Wait for background work by polling instead of sleeping."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from agent_memory_client import MemoryAPIClient

Found = TypeVar("Found")

# Less than the default lease of a worker: claimed work that no worker runs must not look slow.
PATIENCE_SECONDS = 30.0
_POLL_SECONDS = 0.05


async def wait_until(condition: Callable[[], Awaitable[Found]], what: str, seconds: float = PATIENCE_SECONDS) -> Found:
    """Poll `condition` until it returns a true value, and return it. Fail after the timeout."""
    deadline = time.monotonic() + seconds
    while not (found := await condition()):
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain: {what}"
        await asyncio.sleep(_POLL_SECONDS)
    return found


async def settled(memory: MemoryAPIClient, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until workers have no pending work. Fail if they give up or make no progress."""
    least, deadline = math.inf, 0.0
    while True:
        work = (await memory.ready())["checks"]["work"]
        assert not any(kind["dead"] for kind in work.values()), f"work was given up: {work}"
        pending = sum(kind["pending"] for kind in work.values())
        if not pending:
            return
        if pending < least:
            least, deadline = pending, time.monotonic() + seconds
        assert time.monotonic() < deadline, f"the workers finished nothing for {seconds:.0f} s: {work}"
        await asyncio.sleep(_POLL_SECONDS)


def wait_for(condition: Callable[[], Found], what: str, seconds: float = PATIENCE_SECONDS) -> Found:
    """Like `wait_until`, for tests without an event loop."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain: {what}"
        time.sleep(_POLL_SECONDS)
    return found
