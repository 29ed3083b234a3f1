"""Define the HTTP paths for MCP, with and without a namespace prefix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import TypeAdapter, ValidationError
from starlette.routing import Route
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.input.validation import first_problem
from agent_memory_client.models import Identifier

_IDENTIFIER: TypeAdapter[str] = TypeAdapter(Identifier)


def routes_of(method: str, name: str, serve: Callable[[AsgiScope, Receive, Send], Any]) -> list[Route]:
    """Return an endpoint's routes with optional namespaces and trailing slashes."""
    paths = (f"/{name}", f"/{name}/", f"/{{namespace}}/{name}", f"/{{namespace}}/{name}/")
    return [Route(path, _Endpoint(path.rstrip("/"), serve), methods=[method], include_in_schema=False) for path in paths]


class _Endpoint:
    """An ASGI application that provides a path template for metrics."""

    def __init__(self, template: str, serve: Callable[[AsgiScope, Receive, Send], Any]) -> None:
        self.path_format = template
        self._serve = serve

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        scope["route"] = self
        namespace_in(scope)  # refuse an invalid namespace now, not as an error within an answer
        await self._serve(scope, receive, send)


def namespace_in(scope: AsgiScope) -> str | None:
    """Return the namespace in the path, or None. Raises BadInput if it is invalid."""
    name: str | None = scope["path_params"].get("namespace")
    if name is None:
        return None
    if "\ufffd" in name:
        raise BadInput("must be percent-encoded UTF-8", field="namespace", where="path")
    try:
        return _IDENTIFIER.validate_python(name)
    except ValidationError as error:
        raise BadInput(first_problem(error)[1], field="namespace", where="path") from None
