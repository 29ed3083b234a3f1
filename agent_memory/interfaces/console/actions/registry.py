"""Register actions by name: changes that console users make, and the REST operations that carry them out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.responses import Response

from agent_memory.interfaces.console.frame import Fields, Page

Run = Callable[[Page, Fields], Awaitable[Response | str | None]]


@dataclass(frozen=True, slots=True)
class Action:
    """A registered action.

    `run` returns `<action>:<id>` for the "undo" button, None if the action cannot be undone, or a page.
    """

    run: Run
    twins: tuple[str, ...]


class Actions(dict[str, Action]):
    def add(self, name: str, *twins: str) -> Callable[[Run], Run]:
        """Register an action. `twins` are the REST operations that it calls, as `METHOD /path`."""

        def register(run: Run) -> Run:
            self[name] = Action(run, twins)
            return run

        return register
