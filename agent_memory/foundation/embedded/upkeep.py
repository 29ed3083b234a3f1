"""Tune a running redis-server."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError

from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.settings.engine import COLLECTOR_SECONDS
from agent_memory.foundation.embedded.engine import connect

log = get_logger(__name__)

_LOOK_SECONDS = 30.0
# A collection forks the server and walks the index. For 100,000 documents, this keeps a core busy for about 2 s. With a
# pause of one second per 2,000 documents, collections use 4% of a core.
_DOCUMENTS_PER_SECOND = 2_000
_LONGEST_SECONDS = 600
_CHILD_NICENESS = 10


class EngineUpkeep:
    """Tunes one running redis-server. Call `look` several times per second."""

    def __init__(self) -> None:
        self._seconds = int(COLLECTOR_SECONDS)
        self._next = 0.0
        self._children: frozenset[int] = frozenset()

    async def look(self, pid: int, *, port: int, password: str) -> None:
        """Lower the priority of new child processes, and adjust garbage collection."""
        self._children = _lower_children(pid, self._children)
        if (now := time.monotonic()) < self._next:
            return
        self._next = now + _LOOK_SECONDS
        client = connect(port=port, password=password)
        try:
            interval_seconds = collector_seconds(await _largest(client))
            if interval_seconds != self._seconds:
                await client.execute_command("FT.CONFIG", "SET", "FORK_GC_RUN_INTERVAL", interval_seconds)
                self._seconds = interval_seconds
        except (RedisError, OSError) as error:
            log.debug("garbage collection of search indexes not configured", error=error)
        finally:
            await client.aclose()


def collector_seconds(documents: int) -> int:
    """Return the interval between garbage collections in seconds.

    `documents` is the size of the largest index.
    """
    return max(int(COLLECTOR_SECONDS), min(documents // _DOCUMENTS_PER_SECOND, _LONGEST_SECONDS))


async def _largest(client: Any) -> int:
    most = 0
    for name in await client.execute_command("FT._LIST"):
        info: Any = await client.execute_command("FT.INFO", name)
        flat = info if isinstance(info, dict) else dict(zip(info[::2], info[1::2], strict=False))
        most = max(most, int(flat.get(b"num_docs") or 0))
    return most


def _lower_children(pid: int, lowered: frozenset[int]) -> frozenset[int]:
    """Lower the priority of the server's children and return their ids. Linux only."""
    children: set[int] = set()
    with suppress(OSError, ValueError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            children.update(int(child) for child in (thread / "children").read_text().split())
    for child in children - lowered:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, child, _CHILD_NICENESS)
    return frozenset(children)
