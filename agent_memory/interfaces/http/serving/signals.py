"""Handle SIGINT and SIGTERM. A second Ctrl-C exits immediately."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable

import uvloop

from agent_memory.foundation.core.errors import AgentMemoryError, StartupError

_INTERRUPTED = 130


class Shutdown:
    """Tells the parts of a process when to shut down."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.at_once = False
        """True after Ctrl-C. In that case, the process stops without first sending callers elsewhere."""
        self._starting: asyncio.Task[object] | None = asyncio.current_task()

    def install(self) -> None:
        """Install handlers for SIGINT and SIGTERM in the running event loop."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal, number)

    def started(self) -> None:
        """Mark startup as complete, so that signals no longer cancel the starting task."""
        self._starting = None

    def _on_signal(self, number: int) -> None:
        if not self.requested.is_set():
            self.at_once = number == signal.SIGINT
            self.requested.set()
            if self._starting is not None:
                self._starting.cancel()
        elif number == signal.SIGINT:
            # Supervisors repeat SIGTERM; people repeat Ctrl-C. The embedded Redis exits on its own when this process
            # ends.
            print("agent-memory: stopped immediately", file=sys.stderr, flush=True)
            os._exit(_INTERRUPTED)


def run_until_stopped(main: Callable[[Shutdown], Awaitable[None]]) -> None:
    """Run `main` on a new uvloop event loop in this thread. Raises StartupError.

    A signal during startup cancels `main` but does not raise an error.
    """

    async def guarded() -> None:
        shutdown = Shutdown()
        shutdown.install()
        try:
            await main(shutdown)
        except asyncio.CancelledError:
            if not shutdown.requested.is_set():
                raise
        except StartupError:
            raise
        except AgentMemoryError as error:  # for example Redis became unavailable while we opened it
            raise StartupError(error.message) from error

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(guarded())
