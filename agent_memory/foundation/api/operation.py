"""Define routes that validate the body only once."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from agent_memory.foundation.api.arguments import ArgumentReader
from agent_memory.foundation.api.body import RawBody
from agent_memory.foundation.api.dependencies import scope_of
from agent_memory.foundation.api.idempotency import IdempotencyService, StoredAnswer, request_digest
from agent_memory.foundation.api.responses import add_notices
from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.input.unknown_fields import ignored_names
from agent_memory.foundation.core.notices import collecting_notices
from agent_memory.foundation.core.scope import Scope as TenantScope


@dataclass(frozen=True, slots=True)
class Replay:
    """How to store a response without data that can be deleted, and how to read that data again for a repeated request."""

    reduce: Callable[[bytes], bytes]
    complete: Callable[[Services, TenantScope, bytes], Awaitable[bytes]]


ARGUMENTS = "agent_memory.arguments"
"""Key in the ASGI scope for the arguments of the running operation."""
ANSWER = "agent_memory.answer"
"""Key in the ASGI scope for the operation's response."""
_DELETING: set[Callable[..., Any]] = set()
_COMPUTING: set[Callable[..., Any]] = set()
_REPLAYS: dict[Callable[..., Any], Replay] = {}

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class Operation(APIRoute):
    """A route whose endpoint returns a Response.

    `response_model` is for documentation only. A trailing slash in the path is optional.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        self.path_regex, last_parameter = _path_with_either_slash(path)
        deletes = "DELETE" in (self.methods or ()) or endpoint in _DELETING
        self._arguments = ArgumentReader(self.dependant, last_parameter, deletes=deletes)
        # Erasures do not delete stored responses, so responses to reads are not stored. A repeated read runs again.
        self._keeps_answers = not self._arguments.is_provided_by(scope_of) and endpoint not in _COMPUTING
        self._replay = _REPLAYS.get(endpoint)
        self.app = self._serve

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        with collecting_notices() as notices:
            arguments, body, ignored = await self._arguments.read(Request(scope, receive))
            scope[ARGUMENTS] = arguments
            response = scope[ANSWER] = await self._answer(scope, arguments, body, notices)
        if ignored:
            response.raw_headers = [*response.raw_headers, (b"x-ignored-fields", ignored_names(ignored).encode())]
        await response(scope, receive, send)

    async def _answer(self, scope: Scope, arguments: dict[str, Any], body: bytes, notices: list[str]) -> Response:
        async def answer() -> Response:
            return add_notices(await self.endpoint(**arguments), notices)

        key = next((value for name, value in scope["headers"] if name == b"idempotency-key"), None)
        if key is None or scope["method"] != "POST" or "services" not in arguments:
            return await answer()
        body = next((value for value in arguments.values() if isinstance(value, RawBody)), body)
        request = request_digest(scope["method"], scope["path"], scope["query_string"], body)
        services, caller, replay = arguments["services"], arguments["scope"], self._replay
        service: IdempotencyService = services[IdempotencyService]
        reduce = None if replay is None else replay.reduce
        once = await service.answer_once(caller, key.decode("latin-1"), request, answer, keeps=self._keeps_answers, reduce=reduce)
        if not isinstance(once, StoredAnswer):
            return once
        return _replayed(once if replay is None else replace(once, body=await replay.complete(services, caller, once.body)))


def _replayed(stored: StoredAnswer) -> Response:
    response = Response(stored.body, stored.status)
    pairs = (line.split(b": ", 1) for line in stored.headers.split(b"\n") if line)
    response.raw_headers = [(b"content-length", b"%d" % len(stored.body)), *((pair[0], pair[1]) for pair in pairs)]
    response.raw_headers.append((b"idempotent-replayed", b"true"))
    return response


class OperationRouter:
    """Routes requests to operations by path, and all other requests to `router`."""

    def __init__(self, router: APIRouter) -> None:
        self._router = router
        self._operations: dict[str, list[Operation]] = {}
        for route in router.routes:
            if isinstance(route, Operation):
                self._operations.setdefault(_beginning(route.path), []).append(route)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        operations = self._operations.get(_beginning(scope["path"]), ()) if scope["type"] == "http" and not scope.get("root_path") else ()
        for operation in operations:
            match, child_scope = operation.matches(scope)
            if match is Match.FULL:
                scope.update(child_scope)
                await operation.handle(scope, receive, send)
                return
        await self._router(scope, receive, send)


def _beginning(path: str) -> str:
    return "/".join(path.split("/", 3)[:3])


class NamedRoute(Route):
    """A route in an API that is compatible with another product."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child_scope = super().matches(scope)
        return match, child_scope if match is Match.NONE else {**child_scope, "route": self}


def deleting(endpoint: Endpoint) -> Endpoint:
    """Mark an endpoint that deletes data but does not use the DELETE method.

    It rejects unknown fields that look like filters.
    """
    _DELETING.add(endpoint)
    return endpoint


def computing(endpoint: Endpoint) -> Endpoint:
    """Mark an endpoint whose response must not be stored under an Idempotency-Key."""
    _COMPUTING.add(endpoint)
    return endpoint


def replaying(replay: Replay) -> Callable[[Endpoint], Endpoint]:
    """Mark an endpoint whose stored response omits data that can be deleted."""

    def mark(endpoint: Endpoint) -> Endpoint:
        _REPLAYS[endpoint] = replay
        return endpoint

    return mark


def operations(tag: str) -> APIRouter:
    return APIRouter(tags=[tag], route_class=Operation)


def _path_with_either_slash(path: str) -> tuple[re.Pattern[str], str | None]:
    """Return a pattern with an optional trailing slash, and the final parameter or None."""
    pattern, position, last_parameter = "", 0, None
    trimmed = path.rstrip("/")
    for parameter in re.finditer(r"{(\w+)(:path)?}", trimmed):
        # `{name:path}` also matches line breaks and the empty string: an invalid id causes a 422 instead of a 404.
        text = r"[\s\S]*?" if parameter[2] else "[^/]+"
        pattern += re.escape(trimmed[position : parameter.start()]) + f"(?P<{parameter[1]}>{text})"
        position, last_parameter = parameter.end(), parameter[1]
    ends_with_parameter = position == len(trimmed)
    return re.compile(f"{pattern}{re.escape(trimmed[position:])}/?\\Z"), last_parameter if ends_with_parameter else None
