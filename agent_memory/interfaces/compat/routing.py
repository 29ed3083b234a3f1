"""Build a compatible API's routes from a table of its operations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request, Response
from pydantic import ValidationError
from starlette.routing import BaseRoute

from agent_memory.foundation.api.operation import NamedRoute
from agent_memory.foundation.api.responses import JsonResponse
from agent_memory.foundation.core.errors import AgentMemoryError, BadInput, NotSupported, RetryLater
from agent_memory.interfaces.compat.service import bad_input, refuse_unknown

_MOST_TEXT = 400
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
Handler = Callable[[Request, Any], Awaitable[Any]]
"""A function that takes a request and the product's service."""
Operation = tuple[str, str, Handler]
"""Method, path and handler."""


async def not_supported(request: Request, service: object) -> Any:
    raise NotSupported(f"{request.method} {request.url.path.rstrip('/')}")


@dataclass(frozen=True, slots=True)
class CompatApi:
    """Another product's API. Paths in `unsupported` return status 501."""

    operations: Sequence[Operation]
    unsupported: Sequence[str]
    answer: Callable[[Handler, Request], Awaitable[Response]]
    """Runs a handler for a request."""
    error_field: str
    """The field of an error response that contains the error message."""
    delete_parameters: Mapping[Handler, Sequence[str]] = field(default_factory=dict[Handler, Sequence[str]])
    """The query parameters that deletes accept. Others get a 501, because ignoring them could delete too much."""

    def routes(self) -> list[BaseRoute]:
        """Return all routes. If a path ends with a slash, the slash is optional."""
        each: list[BaseRoute] = []
        for method, path, handler in self.operations:
            shapes = dict.fromkeys((path, path.rstrip("/")))
            each += [NamedRoute(shape, self._endpoint(handler, deletes=method == "DELETE"), methods=[method]) for shape in shapes]
        return each + [NamedRoute(path, self._endpoint(not_supported), methods=_METHODS) for path in self.unsupported]

    def _endpoint(self, handler: Handler, *, deletes: bool = False) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                if deletes:
                    refuse_unknown(request.query_params, self.delete_parameters.get(handler, ()), f"DELETE {request.url.path}: ")
                return await self.answer(handler, request)
            except ValidationError as error:
                return self._error_answer(bad_input(error))
            except AgentMemoryError as error:
                return self._error_answer(error)

        return endpoint

    def _error_answer(self, error: AgentMemoryError) -> Response:
        """Return an error response that uses status 400 instead of 422."""
        if isinstance(error, NotSupported):
            text = f"{error.message} is not supported by this server"
        else:
            text = f"{error.field}: {error.message}" if isinstance(error, BadInput) else error.advice
        line = text[:_MOST_TEXT].encode("utf-8", "replace").decode()
        headers = {"Retry-After": str(error.retry_after)} if isinstance(error, RetryLater) else None
        return JsonResponse({self.error_field: line, "code": error.code}, 400 if error.status == 422 else error.status, headers)
