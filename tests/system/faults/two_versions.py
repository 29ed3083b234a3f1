"""Run the fault harness with some processes from another checkout (F14).

`python -m tests.system.faults.two_versions CHECKOUT api1,worker1 --seconds 45`.
The other checkout needs its own `.venv`. Further arguments go to `tests.system.faults`.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import patch

from tests.system.faults import __main__ as faults
from tests.system.faults import fleet, run
from tests.system.faults.fleet import Nursery, Process, environment


def main() -> int:
    checkout, names = Path(sys.argv[1]).absolute(), set(sys.argv[2].split(","))

    class TwoNurseries(Nursery):
        """Starts the given processes from the other checkout."""

        @asynccontextmanager
        async def running(self) -> AsyncGenerator[Nursery]:
            async with super().running():
                self._other = Nursery(self._folder)
                other = self._other.running()
                python = str(checkout / ".venv" / "bin" / "python")
                with (
                    patch.object(fleet, "ROOT", checkout),
                    patch.object(sys, "executable", python),
                    patch.object(fleet, "environment", lambda **extra: environment(**extra) | {"PYTHONPATH": str(checkout)}),
                ):
                    await other.__aenter__()
                try:
                    yield self
                finally:
                    await other.__aexit__(None, None, None)

        async def start(self, name: str, *arguments: str, skew: int = 0, **settings: str) -> Process:
            if name in names:
                return await self._other.start(name, *arguments, skew=skew, **settings)
            return await super().start(name, *arguments, skew=skew, **settings)

    sys.argv = [sys.argv[0], *sys.argv[3:]]
    with patch.object(run, "Nursery", TwoNurseries):
        return faults.main()


if __name__ == "__main__":
    sys.exit(main())
