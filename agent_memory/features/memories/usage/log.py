"""Collect memory reads, and write them in batches after responses are sent."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable

from agent_memory.features.memories.usage.store import SAME_READING_SECONDS, UsageStore
from agent_memory.foundation.core.errors import AgentMemoryError
from agent_memory.foundation.core.logs import get_logger

log = get_logger(__name__)

_DELAY_SECONDS = 0.5
_CLOSE_SECONDS = 2.0
_BATCH = 500
# Beyond these numbers, for example if Redis is unavailable, drop reads to save memory.
_MOST_WAITING = 20_000
_MOST_REMEMBERED = 100_000


class UsageLog:
    """Collects memory reads. Requests never wait for the writes or fail because of them."""

    def __init__(self, store: UsageStore, *, delay_seconds: float = _DELAY_SECONDS) -> None:
        self._store = store
        self._waiting: dict[str, int] = {}
        self._noted: dict[str, float] = {}
        self._delay = delay_seconds
        self._writer: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def note_readings(self, memories: Iterable[tuple[str, int]]) -> None:
        """Record that memories were read. Each pair is a mid and an access count."""
        now = time.monotonic()
        for mid, count in memories:
            last = self._noted.get(mid)
            if (last is None or now - last >= SAME_READING_SECONDS) and len(self._waiting) < _MOST_WAITING:
                self._waiting.setdefault(mid, count)
        if self._waiting and (self._writer is None or self._writer.done()):
            self._writer = asyncio.create_task(self._write_later())

    async def flush(self) -> None:
        """Write the collected reads. After a failure, the next read tries again."""
        while self._waiting:
            batch = dict(list(self._waiting.items())[:_BATCH])
            await self._store.count_readings(batch)
            if len(self._noted) > _MOST_REMEMBERED:
                self._noted.clear()
            now = time.monotonic()
            for mid in batch:
                self._waiting.pop(mid, None)
                self._noted[mid] = now

    async def close(self) -> None:
        """Write all collected reads. Give up after two seconds."""
        self._closing.set()
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                if self._writer is not None:
                    await self._writer
                await self._write_or_log()
        except TimeoutError:
            log.warning("reads of memories not counted in time", seconds=_CLOSE_SECONDS)

    async def _write_later(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), self._delay)
        await self._write_or_log()

    async def _write_or_log(self) -> None:
        try:
            await self.flush()
        except AgentMemoryError as error:
            log.warning("reads of memories not counted", error=error)
