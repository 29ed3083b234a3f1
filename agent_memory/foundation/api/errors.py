"""Convert exceptions to HTTP responses that never echo the input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route

from agent_memory.foundation.api.responses import JsonResponse
from agent_memory.foundation.core.errors import (
    AgentMemoryError,
    BadInput,
    RetryLater,
    TooLarge,
    Unauthenticated,
    Unavailable,
    UnsupportedRequest,
)
from agent_memory.foundation.core.input.unknown_fields import UnknownFields
from agent_memory.foundation.core.logs import get_logger
from agent_memory_client._wire.problems import plain_problems

log = get_logger(__name__)

MAX_PROBLEMS = 20
MAX_MESSAGE_CHARS = 400
MAX_LOC_CHARS = 64
MAX_LOC_PARTS = 12
MANY_ERRORS = 50_000
CLIENT_GONE = 499
UNMATCHED = "unmatched"

_CODES = {400: "bad_request", 401: "unauthenticated", 403: "forbidden", 404: "not_found", 405: "method_not_allowed"}


class UnsupportedMedia(BadInput):
    code = "unsupported_media_type"
    status = 415


class BodyTooLarge(TooLarge):
    """The body is larger than `limit` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the body is larger than {limit} bytes: send less per request, or raise MAX_BODY_BYTES", limit=limit)


def install(app: FastAPI) -> None:
    """Register the exception handlers."""
    app.add_exception_handler(AgentMemoryError, _on_our_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(ClientDisconnect, _on_disconnect)


def invalid(error: ValidationError, source: str | Callable[[str], tuple[str, str]]) -> RequestValidationError:
    """Return the 422 error for a pydantic error.

    `source` is "body", or a function that maps a parameter to its location and name.
    """
    if error.error_count() > MANY_ERRORS:
        # Listing a million errors blocks the event loop for seconds.
        message = f"the body has {error.error_count()} invalid fields: send fewer items per request"
        return RequestValidationError([_problem("too_many_errors", ("body",), message)])
    problems: list[dict[str, Any]] = []
    for problem in plain_problems(error)[:MAX_PROBLEMS]:
        loc = problem["loc"]
        where = (source, *loc) if isinstance(source, str) else (*source(str(loc[0]) if loc else ""), *loc[1:])
        problems.append(_problem(problem["type"], where, problem["msg"]))
    return RequestValidationError(problems)


def unknown(refused: UnknownFields, source: str) -> RequestValidationError:
    """Return the 422 error for unknown fields and any other validation errors."""
    problems = [_problem("unknown_field", (source, *field.path), field.why) for field in refused.fields[:MAX_PROBLEMS]]
    if refused.error is not None and len(problems) < MAX_PROBLEMS:
        named = [problem["loc"] for problem in problems]
        problems += [problem for problem in invalid(refused.error, source).errors() if problem["loc"] not in named]
    return RequestValidationError(problems)


def broken_json(reason: str) -> RequestValidationError:
    """Return the 422 error for invalid JSON."""
    hint = next((hint for sign, hint in _JSON_HINTS if sign in reason), "send one JSON object")
    return RequestValidationError([_problem("json_invalid", ("body",), f"the body is not valid JSON ({reason}): {hint}")])


_JSON_HINTS = (
    ("EOF while parsing a value at line 1 column 0", "it is empty, send a JSON object"),
    ("recursion", "it is nested too deeply, flatten it"),
    ("out of range", "a number has too many digits, send it as a string"),
    ("unicode code point", "it must be encoded in UTF-8"),
    ("hex escape", "remove or replace lone surrogate escapes such as \\ud800"),
    ("surrogate", "remove or replace lone surrogate escapes such as \\ud800"),
    ("EOF", "it ends too early"),
)


def _problem(kind: str, loc: Sequence[str | int], message: str) -> dict[str, Any]:
    parts = [part if isinstance(part, int) else _cut(part, MAX_LOC_CHARS) for part in loc[:MAX_LOC_PARTS]]
    field = ".".join(str(part) for part in parts[1:]) or str(parts[0])
    text = message if message.startswith(("the body ", f"{field}: ")) else f"{field}: {message}"
    return {"type": _cut(kind, MAX_LOC_CHARS), "loc": parts, "msg": _cut(text, MAX_MESSAGE_CHARS)}


def _cut(text: str, limit: int) -> str:
    return text[:limit].encode("utf-8", "replace").decode() + ("…" if len(text) > limit else "")


def render(error: AgentMemoryError, *, challenge: str = "Bearer") -> JsonResponse:
    """Return the response for an error. `challenge` is the WWW-Authenticate header for 401."""
    if isinstance(error, BadInput) and not isinstance(error, UnsupportedRequest) and error.status == 422:
        within = () if error.field == error.where else error.field.split(".")
        # A caller's metadata key can be a number, too, and int() raises for 5,000 digits.
        loc = (error.where, *(int(part) if part.isdecimal() and len(part) <= 18 else part for part in within))
        return JsonResponse({"detail": [_problem(error.code, loc, error.message)], "code": error.code}, 422)
    headers = None
    if isinstance(error, RetryLater):
        headers = {"Retry-After": str(error.retry_after)}
    elif isinstance(error, Unauthenticated):
        headers = {"WWW-Authenticate": challenge}
    body: dict[str, Any] = {**_bounded(error.data), "detail": _cut(error.message, MAX_MESSAGE_CHARS), "code": error.code}
    return JsonResponse(body, error.status, headers)


def _bounded(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _cut(value, MAX_MESSAGE_CHARS) if isinstance(value, str) else value for key, value in data.items()}


def internal_error() -> Response:
    """Return the response for an unexpected error without revealing the cause."""
    return JsonResponse({"detail": "Internal Server Error", "code": "internal_error"}, 500)


async def _on_our_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, AgentMemoryError)
    if error.status >= 500 and not isinstance(error, Unavailable):
        log.error("request failed", method=request.method, path=template_of(request.scope), code=error.code, exc_info=error)
    return render(error)


async def _on_invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    problems = [_problem(each["type"], each["loc"], each["msg"]) for each in plain_problems(error.errors())[:MAX_PROBLEMS]]
    return JsonResponse({"detail": problems, "code": BadInput.code}, 422)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers, detail = dict(error.headers or {}), error.detail
    if error.status_code == 405:
        # The router lists only the methods of the first route for the path.
        path = request.scope["path"]
        matching = [route for route in request.app.routes if isinstance(route, Route) and route.path_regex.match(path)]
        headers["Allow"] = ", ".join(sorted({method for route in matching for method in route.methods or ()})) or headers.get("Allow", "")
        detail = f"{detail}: use {headers['Allow']}"
    elif error.status_code == 404:
        detail = f"{detail}: there is no such path, /docs lists all"
    return JsonResponse({"detail": detail, "code": _CODES.get(error.status_code, "http_error")}, error.status_code, headers)


async def _on_disconnect(request: Request, error: Exception) -> Response:
    return Response(status_code=CLIENT_GONE)


def template_of(scope: Mapping[str, Any]) -> str:
    """Return the matched route's path template, which contains no ids, or `UNMATCHED`."""
    return getattr(scope.get("route"), "path_format", UNMATCHED)
