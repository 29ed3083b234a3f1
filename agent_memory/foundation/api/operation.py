"""Routes that FastAPI documents and we run: each argument is read once, the body is validated once, straight from its bytes.

FastAPI writes the OpenAPI document from an endpoint's signature. Its argument solver would add 0.4 ms to each request, about what a whole
PUT takes: it parses a body before it validates it, and runs plain dependencies in threads. An `Operation` reads the same signature at
start (`arguments.py`) and answers by it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from agent_memory.foundation.api.arguments import ArgumentReader
from agent_memory.foundation.api.body import RawBody
from agent_memory.foundation.api.dependencies import scope_of
from agent_memory.foundation.api.idempotency.header import answered_once, key_of
from agent_memory.foundation.api.responses import add_notices
from agent_memory.foundation.core.input.unknown_fields import shown
from agent_memory.foundation.core.notices import collecting_notices

ARGUMENTS = "agent_memory.arguments"
"""Where an ASGI scope holds the arguments of the operation that runs."""
ANSWER = "agent_memory.answer"
"""Where it holds the operation's response."""
_DELETING: set[Callable[..., Any]] = set()
_COMPUTING: set[Callable[..., Any]] = set()

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class Operation(APIRoute):
    """One operation. Its endpoint returns a Response; `response_model` only documents it. A trailing slash in the URL changes nothing."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        self.path_regex, last_parameter = _path_with_either_slash(path)
        deletes = "DELETE" in (self.methods or ()) or endpoint in _DELETING
        self._arguments = ArgumentReader(endpoint, last_parameter, deletes=deletes)
        # What was read must not be kept where an erasure would not know of it: the same read under its key is read again.
        self._keeps_answers = not self._arguments.is_provided_by(scope_of) and endpoint not in _COMPUTING
        self.app = self._serve

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """See APIRoute."""
        return self.respond

    async def respond(self, request: Request) -> Response:
        """The response to a request whose scope has the path's parameters. Raises what ArgumentReader.read and the endpoint raise."""
        scope = request.scope
        with collecting_notices() as notices:
            arguments, body, ignored = await self._arguments.read(request)
            scope[ARGUMENTS] = arguments
            response = scope[ANSWER] = await self._answer(scope, arguments, body, notices)
        if ignored:
            response.raw_headers = [*response.raw_headers, (b"x-ignored-fields", shown(ignored).encode())]
        return response

    async def _answer(self, scope: Scope, arguments: dict[str, Any], body: bytes, notices: list[str]) -> Response:
        async def answer() -> Response:
            return add_notices(await self.endpoint(**arguments), notices)

        key = key_of(scope)
        if key is None or "services" not in arguments:
            return await answer()
        body = next((value for value in arguments.values() if isinstance(value, RawBody)), body)
        services, caller_scope, keeps = arguments["services"], arguments["scope"], self._keeps_answers
        return await answered_once(services, caller_scope, key, scope, body, answer, keeps=keeps)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self.respond(Request(scope, receive))
        await response(scope, receive, send)


class OperationTable(BaseRoute):
    """Operations by their method and the word behind `/v1/`: the router tries all fifty in turn, 1.5 µs each.

    It stands before them; what it does not know (405, 404) is left to the router.
    """

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        self._operations: defaultdict[tuple[str, str], list[Operation]] = defaultdict(list)
        for route in routes:
            if isinstance(route, Operation):
                for method in route.methods or ():
                    self._operations[method, _word(route.path)].append(route)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """See BaseRoute: the first operation that the router would find."""
        if scope["type"] == "http":
            for operation in self._operations.get((scope["method"], _word(scope["path"])), ()):
                match = operation.path_regex.match(scope["path"])
                if match is not None and not scope.get("root_path"):
                    return Match.FULL, {"endpoint": operation.endpoint, "path_params": match.groupdict(), "route": operation}
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See BaseRoute."""
        await scope["route"].app(scope, receive, send)


class NamedRoute(Route):
    """A route of another product's API. It puts itself into a request's scope, as ours do: the log names its template."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """See BaseRoute."""
        match, found = super().matches(scope)
        return match, found if match is Match.NONE else {**found, "route": self}


def _word(path: str) -> str:
    return "/".join(path.split("/", 3)[:3])


def deleting(endpoint: Endpoint) -> Endpoint:
    """Marks an endpoint that deletes though its method is not DELETE: a parameter that would narrow what goes must mean something."""
    _DELETING.add(endpoint)
    return endpoint


def computing(endpoint: Endpoint) -> Endpoint:
    """Marks an endpoint that computes a text anew, which must not be kept beside what it was made of."""
    _COMPUTING.add(endpoint)
    return endpoint


def operations(tag: str) -> APIRouter:
    """A router whose routes are operations."""
    return APIRouter(tags=[tag], route_class=Operation)


def _path_with_either_slash(path: str) -> tuple[re.Pattern[str], str | None]:
    """A pattern that takes `path` with and without a trailing slash, and the name of the parameter that the path ends with, if any.

    `{name:path}` takes anything, also line breaks (an id with one must be refused by name, not by a 404) and nothing at all.
    """
    pattern, position, last_parameter = "", 0, None
    trimmed = path.rstrip("/")
    for parameter in re.finditer(r"{(\w+)(:path)?}", trimmed):
        text = r"[\s\S]*?" if parameter[2] else "[^/]+"
        pattern += re.escape(trimmed[position : parameter.start()]) + f"(?P<{parameter[1]}>{text})"
        position, last_parameter = parameter.end(), parameter[1]
    ends_with_parameter = position == len(trimmed)
    return re.compile(f"{pattern}{re.escape(trimmed[position:])}/?\\Z"), last_parameter if ends_with_parameter else None
