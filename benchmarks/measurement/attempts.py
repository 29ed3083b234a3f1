"""Run each part of a benchmark with one retry, and continue after failures."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

Result = TypeVar("Result")
_PAUSE_SECONDS = 2.0


class Attempts:
    """Runs parts until time runs out. `failures` lists failed attempts and skipped parts."""

    def __init__(self, say: Callable[[str], None], seconds: float, *, pause_seconds: float = _PAUSE_SECONDS) -> None:
        self._say = say
        self._pause_seconds = pause_seconds
        self._end = time.monotonic() + seconds
        self.failures: list[dict[str, Any]] = []

    async def of(self, what: str, work: Callable[[], Awaitable[Result]], *, most_seconds: float = 120.0) -> Result | None:
        """Return the result of `work`, retrying once after a failure.

        Return None after two failures or if time has run out.
        """
        for last in (False, True):
            left = self._end - time.monotonic()
            if left <= 0:
                self._note(what, "skipped: the run's time (--minutes) is over")
                return None
            try:
                async with asyncio.timeout(min(most_seconds, left)):
                    return await work()
            except TimeoutError as error:
                why = str(error) or f"took longer than {min(most_seconds, left):.0f} s"
            # Later parts do not depend on this part, so record any error and continue.
            except Exception as error:  # noqa: BLE001 - every failure becomes part of the result
                why = f"{type(error).__name__}: {error}"
            self._note(what, why, again=not last)
            await asyncio.sleep(0 if last else self._pause_seconds)
        return None

    def _note(self, what: str, why: str, *, again: bool = False) -> None:
        self.failures.append({"what": what, "why": why[:2000], "again": again})
        self._say(f"FAILED{' (retrying)' if again else ''}: {what}: {why[-600:]}")
