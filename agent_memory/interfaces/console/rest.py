"""Call REST operations in this process with the caller's rights."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from pydantic_core import from_json, to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_memory.foundation.api.principals import PRINCIPAL
from agent_memory.foundation.core.scope import Principal

# A call's ASGI scope takes these keys from the page's request. Other data, such as credentials, is not passed on.
_SHARED = ("app", "asgi", "client", "http_version", "scheme", "server")


Rewrite = Callable[[bytes], bytes]


class RestError(Exception):
    """An error response from a REST operation."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Rest:
    """A client for REST operations.

    `app` serves REST without authentication. `principal` is None if the server requires no
    credentials.
    """

    def __init__(self, app: ASGIApp, request: Request, principal: Principal | None) -> None:
        self._app = app
        self._shared = {name: value for name, value in request.scope.items() if name in _SHARED or name.startswith("agent_memory.")}
        self._shared.pop(PRINCIPAL, None)
        if principal is not None:
            self._shared[PRINCIPAL] = principal

    async def __call__(
        self, method: str, path: str, json: Any = None, *, headers: Mapping[str, str] | None = None, **query: str | float | None
    ) -> Any:
        """Call an operation and return its JSON response. Raises RestError.

        `path` must not be percent-encoded. Parameters that are None are omitted.
        """
        return (await self.answer(method, path, json, headers=headers, **query))[0]

    async def answer(
        self, method: str, path: str, json: Any = None, *, headers: Mapping[str, str] | None = None, **query: str | float | None
    ) -> tuple[Any, dict[str, str]]:
        """Call an operation and return its JSON response and headers. Raises RestError."""
        body = b"" if json is None else to_json(json)
        status, parts, answer_headers, sent = 500, list[bytes](), dict[str, str](), False

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
                answer_headers.update((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in message["headers"])
            else:
                parts.append(message.get("body", b""))

        await self._app(self._scope(method, path, body, headers, query), receive, send)
        content = b"".join(parts)
        if status >= 400:
            raise RestError(status, _message_of(from_json(content or b"null"), status))
        return from_json(content or b"null"), answer_headers

    def forward(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        rewrite: Rewrite | None = None,
        **query: str | float | None,
    ) -> Response:
        """Stream an operation's response with different headers. `rewrite` replaces each line."""
        return _Forwarded(self._app, self._scope(method, path, b"", None, query), headers, rewrite)

    def _scope(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str] | None, query: Mapping[str, str | float | None]
    ) -> Scope:
        all_headers = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
        return {
            **self._shared,
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": quote(path).encode(),
            "root_path": "",
            "query_string": urlencode({name: value for name, value in query.items() if value is not None}).encode(),
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in all_headers.items()],
            "state": {},
        }


class _Forwarded(Response):
    def __init__(self, app: ASGIApp, call: Scope, headers: Mapping[str, str], rewrite: Rewrite | None) -> None:
        super().__init__()
        self._app = app
        self._call = call
        self._headers = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
        self._rewrite = rewrite

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_answer, rest = False, b""

        async def send_changed(message: Message) -> None:
            nonlocal is_answer, rest
            if message["type"] == "http.response.start" and message["status"] == 200:
                is_answer = True
                others = [(name, value) for name, value in message["headers"] if name.lower() not in self._headers]
                message = {**message, "headers": [*others, *self._headers.items()]}
            elif is_answer and self._rewrite is not None and message["type"] == "http.response.body":
                *lines, rest = (rest + message.get("body", b"")).split(b"\n")
                message = {**message, "body": await asyncio.to_thread(_join, self._rewrite, lines)}
            await send(message)

        await self._app(self._call, receive, send_changed)


def _join(rewrite: Rewrite, lines: Sequence[bytes]) -> bytes:
    return b"".join(rewrite(line) for line in lines if line)


def _message_of(answer: Any, status: int) -> str:
    answer = answer if isinstance(answer, dict) else {}
    detail = answer.get("detail")
    if isinstance(detail, list):
        return "; ".join(str(problem.get("msg", "")) for problem in detail)
    return ": ".join(str(part) for part in (detail or HTTPStatus(status).phrase, answer.get("hint")) if part)
