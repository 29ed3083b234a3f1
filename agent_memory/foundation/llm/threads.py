"""Threads for long computations that nobody's next answer waits for."""

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

# Enough that a core which is asked for by the event loop is given to it, and that two thirds of it remain where nobody asks.
_NICENESS = 5


# Characters that are looked through for patterns where they are: of Chinese, each of which is a word, some ten milliseconds.
_AT_ONCE = 8_000


async def aside(work: Callable[[], Result], characters: int) -> Result:
    """What some work on so many characters gives; when they are many, it is done in a thread, and others go on meanwhile."""
    return work() if characters <= _AT_ONCE else await asyncio.to_thread(work)


def giving_way(name: str) -> ThreadPoolExecutor:
    """One thread that gives way to the process' others where the system knows priorities of threads (Linux)."""
    return ThreadPoolExecutor(1, thread_name_prefix=name, initializer=_give_way)


def _give_way() -> None:
    if sys.platform == "linux":
        # Linux names a thread where POSIX means a process. Priorities only sink: what the process was given counts as well.
        thread = threading.get_native_id()
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + _NICENESS)
