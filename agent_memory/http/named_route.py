"""Routes that are no operations of ours: those of the APIs of other products."""

from __future__ import annotations

from starlette.routing import Match, Route
from starlette.types import Scope


class NamedRoute(Route):
    """A route that puts itself into a request's scope, as FastAPI's do: the log and metrics name its template."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """See BaseRoute."""
        match, found = super().matches(scope)
        return match, found if match is Match.NONE else {**found, "route": self}
