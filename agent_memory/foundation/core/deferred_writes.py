"""Collect changes and write them in batches in the background. Pending changes are written when the process ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from agent_memory.foundation.core.errors import AgentMemoryError

log = logging.getLogger(__name__)

_CLOSE_SECONDS = 2.0


class DeferredWrite:
    """A background task that calls `write` within `delay_seconds` of a call to `soon`.

    Logs each AgentMemoryError that `write` raises. `write` itself must keep the changes that it fails to store. `what`
    is a plural noun for the changes, used in log lines.
    """

    def __init__(self, write: Callable[[], Awaitable[None]], what: str, *, delay_seconds: float) -> None:
        self._write = write
        self._what = what
        self._delay = delay_seconds
        self._writer: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def soon(self) -> None:
        """Schedule a write and return immediately."""
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_later())

    async def close(self) -> None:
        """Write all pending changes. Give up after two seconds."""
        self._closing.set()
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                if self._writer is not None:
                    await self._writer
                await self._write_or_say()
        except TimeoutError:
            log.warning("some %s not written: Redis is slow", self._what)

    async def _write_later(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), self._delay)
        await self._write_or_say()

    async def _write_or_say(self) -> None:
        try:
            await self._write()
        except AgentMemoryError as error:
            log.warning("%s not written: %s", self._what, error)
