"""Threads for long computations."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

Result = TypeVar("Result")

# Enough to yield a core to the event loop, while using two thirds of an idle one.
_NICENESS = 5


# Chinese text of this length takes some ten milliseconds.
_AT_ONCE = 8_000


async def run_in_thread(work: Callable[[], Result], characters: int) -> Result:
    """Run work on this many characters at once, or in a thread if there are many."""
    return work() if characters <= _AT_ONCE else await asyncio.to_thread(work)


def giving_way(name: str) -> ThreadPoolExecutor:
    """Return a one-thread executor of lower priority (Linux only)."""
    return ThreadPoolExecutor(1, thread_name_prefix=name, initializer=_give_way)


def _give_way() -> None:
    if sys.platform == "linux":
        # Linux sets the priority of a thread where POSIX means a process. It can only be lowered.
        thread = threading.get_native_id()
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + _NICENESS)
