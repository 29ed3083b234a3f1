"""Actions by name: what a person changes, and the REST operations that do it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.responses import Response

from agent_memory.interfaces.console.frame import Fields, Page

Run = Callable[[Page, Fields], Awaitable[Response | str | None]]


@dataclass(frozen=True, slots=True)
class Action:
    """`run` returns what "undo" needs, as `<action>:<id>`; None where nothing can be undone; or a page of its own."""

    run: Run
    twins: tuple[str, ...]


class Actions(dict[str, Action]):
    def add(self, name: str, *twins: str) -> Callable[[Run], Run]:
        """Register an action. `twins`: the REST operations it calls, as `METHOD /path`."""

        def register(run: Run) -> Run:
            self[name] = Action(run, twins)
            return run

        return register
