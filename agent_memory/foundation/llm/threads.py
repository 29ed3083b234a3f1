"""Run long computations in threads."""

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

# With this niceness, a thread yields the core to the event loop, but still uses two thirds of an idle core.
_NICENESS = 5


# Chinese text with this many characters takes about ten milliseconds.
_AT_ONCE = 8_000


async def run_in_thread(work: Callable[[], Result], characters: int) -> Result:
    """Run `work` directly, or in a thread if there are many characters to process."""
    return work() if characters <= _AT_ONCE else await asyncio.to_thread(work)


def giving_way(name: str) -> ThreadPoolExecutor:
    """Return an executor with a single thread, which has lower priority on Linux."""
    return ThreadPoolExecutor(1, thread_name_prefix=name, initializer=_give_way)


def _give_way() -> None:
    if sys.platform == "linux":
        # On Linux this sets the priority of one thread; POSIX means the process. The priority can only be lowered.
        thread = threading.get_native_id()
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + _NICENESS)
