"""Handle SIGINT and SIGTERM: the first signal starts an orderly shutdown, a second Ctrl-C quits at once."""

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
        """True after Ctrl-C: a person waits for the end, so callers are not sent to another process first."""
        self._starting: asyncio.Task[object] | None = asyncio.current_task()

    def install(self) -> None:
        """Handle the signals in the running event loop."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal, number)

    def started(self) -> None:
        """Mark the start as done: a signal no longer cancels it, and the caller waits for `requested`."""
        self._starting = None

    def _on_signal(self, number: int) -> None:
        if not self.requested.is_set():
            self.at_once = number == signal.SIGINT
            self.requested.set()
            if self._starting is not None:
                self._starting.cancel()
        elif number == signal.SIGINT:
            # Supervisors repeat SIGTERM, people repeat Ctrl-C. The embedded Redis ends by itself when this process
            # ends.
            print("agent-memory: stopped at once", file=sys.stderr, flush=True)
            os._exit(_INTERRUPTED)


def run_until_stopped(main: Callable[[Shutdown], Awaitable[None]]) -> None:
    """Run `main` on a new uvloop event loop in this thread.

    A signal during the start cancels `main`, which is an orderly end. Raises StartupError.
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
