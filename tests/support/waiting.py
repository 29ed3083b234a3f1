"""Wait for background work: poll a condition instead of sleeping for a guessed time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from agent_memory_client import MemoryAPIClient

Found = TypeVar("Found")

# Less than the default lease of a worker: work that is claimed and forgotten must not pass for slow.
PATIENCE_SECONDS = 30.0
_POLL_SECONDS = 0.05


async def wait_until(condition: Callable[[], Awaitable[Found]], what: str, seconds: float = PATIENCE_SECONDS) -> Found:
    """Poll `condition` until it returns a true value, and return that. Fail with `what` after the timeout."""
    deadline = time.monotonic() + seconds
    while not (found := await condition()):
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain: {what}"
        await asyncio.sleep(_POLL_SECONDS)
    return found


async def settled(memory: MemoryAPIClient, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until the workers have done all pending work. Fail if they gave up any."""

    work: dict[str, Any] = {}

    async def nothing_pending() -> bool:
        work.update((await memory.ready())["checks"]["work"])
        assert not any(kind["dead"] for kind in work.values()), f"work was given up: {work}"
        return not any(kind["pending"] for kind in work.values())

    try:
        await wait_until(nothing_pending, "the workers' rest", seconds)
    except AssertionError as error:
        error.add_note(f"still pending: {work}")
        raise


def wait_for(condition: Callable[[], Found], what: str, seconds: float = PATIENCE_SECONDS) -> Found:
    """`wait_until` for tests without an event loop."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain: {what}"
        time.sleep(_POLL_SECONDS)
    return found
