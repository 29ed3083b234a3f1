"""Threads for long computations that nobody's next answer waits for."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

# Enough that a core which is asked for by the event loop is given to it, and that two thirds of it remain where nobody asks.
_NICENESS = 5


def giving_way(name: str) -> ThreadPoolExecutor:
    """One thread that gives way to the process' others where the system knows priorities of threads (Linux)."""
    return ThreadPoolExecutor(1, thread_name_prefix=name, initializer=_give_way)


def _give_way() -> None:
    if sys.platform == "linux":
        # Linux names a thread where POSIX means a process. Priorities only sink: what the process was given counts as well.
        thread = threading.get_native_id()
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + _NICENESS)
