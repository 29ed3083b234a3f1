"""The short way to an operation: found in a table, run, and its errors answered, in one layer instead of FastAPI's seven."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, ExceptionHandler, Receive, Scope, Send

from agent_memory.api.operation import Operation

# "/v1/working-memory" of "/v1/working-memory/{session_id}": no other path can match.
_BEGINNING = re.compile(r"/([^/{}]+)/([^/{}]+)(?=/|\Z)")


class Lane:
    """ASGI. What no operation answers (another path or method, another kind of route, another root) goes to `others`, the router.

    The first operation whose path and method match is run, as the router would: paths that begin with the same two words are matched in
    the order of `routes`. An operation whose path does not begin with two words is left to the router.
    """

    def __init__(self, routes: Sequence[BaseRoute], others: ASGIApp, handlers: Mapping[Any, ExceptionHandler]) -> None:
        self._others = others
        self._handlers = handlers
        self._table: dict[tuple[str, str, str], list[Operation]] = {}
        for route in routes:
            if isinstance(route, Operation) and (words := _BEGINNING.match(route.path)):
                for method in route.methods or ():
                    self._table.setdefault((method, words[1], words[2]), []).append(route)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._find(scope) if scope["type"] == "http" else None
        if found is None:
            await self._others(scope, receive, send)
            return
        answered = False
        try:
            response = await found.answer(Request(scope, receive))
            answered = True
            await response(scope, receive, send)
        except Exception as error:
            handler: Any = next((self._handlers[kind] for kind in type(error).__mro__ if kind in self._handlers), None)
            if handler is None:
                raise
            if answered:
                raise RuntimeError("the answer had begun already") from error
            refusal = await handler(Request(scope, receive), error)
            await refusal(scope, receive, send)

    def _find(self, scope: Scope) -> Operation | None:
        """The operation of a request, about which the scope then says what the router would say."""
        path: str = scope["path"]
        words = path.split("/", 3)
        if len(words) < 3 or scope.get("root_path"):
            return None
        for route in self._table.get((scope["method"], words[1], words[2]), ()):
            if (match := route.path_regex.match(path)) is not None:
                scope["route"], scope["endpoint"], scope["path_params"] = route, route.endpoint, match.groupdict()
                return route
        return None
