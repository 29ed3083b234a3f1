"""Call REST operations within the process, with the rights of a page's caller."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from pydantic_core import from_json, to_json
from starlette.requests import Request
from starlette.types import ASGIApp, Message

from agent_memory.foundation.api.principals import PRINCIPAL
from agent_memory.foundation.core.scope import Principal

# What a call shares with its page's request. Everything else, credentials included, stays behind.
_SHARED = ("app", "asgi", "client", "http_version", "scheme", "server")


class RestError(Exception):
    """An error answer of a REST operation."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Rest:
    """`app` serves REST without authentication: `principal` is the caller, None where nobody is asked for credentials."""

    def __init__(self, app: ASGIApp, request: Request, principal: Principal | None) -> None:
        self._app = app
        self._shared = {name: value for name, value in request.scope.items() if name in _SHARED or name.startswith("agent_memory.")}
        self._shared.pop(PRINCIPAL, None)
        if principal is not None:
            self._shared[PRINCIPAL] = principal
        self.calls = 0

    async def __call__(
        self, method: str, path: str, json: Any = None, *, headers: Mapping[str, str] | None = None, **query: str | float | None
    ) -> Any:
        """Return an operation's JSON answer. `path` is not percent-encoded. Leaves out parameters that are None. Raises
        RestError."""
        self.calls += 1
        body = b"" if json is None else to_json(json)
        given = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
        scope = {
            **self._shared,
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": quote(path).encode(),
            "root_path": "",
            "query_string": urlencode({name: value for name, value in query.items() if value is not None}).encode(),
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in given.items()],
            "state": {},
        }
        status, parts, sent = 500, list[bytes](), False

        async def receive() -> Message:
            nonlocal sent
            if sent:
                return {"type": "http.disconnect"}
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                parts.append(message.get("body", b""))

        await self._app(scope, receive, send)
        answer = from_json(b"".join(parts) or b"null")
        if status >= 400:
            raise RestError(status, _message_of(answer, status))
        return answer


def _message_of(answer: Any, status: int) -> str:
    detail = answer.get("detail") if isinstance(answer, dict) else None
    if isinstance(detail, list):
        return "; ".join(str(problem.get("msg", "")) for problem in detail)
    return str(detail or HTTPStatus(status).phrase)
