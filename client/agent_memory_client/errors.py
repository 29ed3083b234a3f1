"""The client's errors, and functions that convert error responses and network failures to them.

MemoryClientError
├── MemoryValidationError (also ValueError)   the input is invalid; no request was sent
├── MemoryNotFoundError                       404
├── MemoryProtocolError                       the server's address or its response is invalid
└── MemoryServerError                         all other error responses: status_code, code, problems, retry_after
    ├── MemoryAuthError                       401, 403
    ├── MemoryConflictError                   409
    │   ├── MemoryPreconditionFailedError     412: another writer changed the session
    │   └── MemoryRequestUnderWayError        409: the first request with an Idempotency-Key is still running; wait retry_after seconds
    └── MemoryUnavailableError                502, 503, 504, or no connection (status_code None): try again later
        ├── MemoryRateLimitError              429: the caller exceeded a limit; wait retry_after seconds
        └── MemoryTimeoutError                no response in time; the server may have processed the request
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

import httpx

MAX_MESSAGE_CHARS = 500


class MemoryClientError(Exception):
    """Base class for all of this client's errors."""


class MemoryValidationError(MemoryClientError, ValueError):
    """The input is invalid, and no request was sent."""


class MemoryProtocolError(MemoryClientError):
    """The server's address or its response is invalid."""


class MemoryNotFoundError(MemoryClientError):
    """The session, memory, view or task does not exist."""

    status_code = 404


class MemoryServerError(MemoryClientError):
    """The server rejected the request or failed.

    `status_code` is None if there was no response. `code` is the server's stable error code.
    `problems` lists the invalid fields in a 422 response (`loc`, `msg`, `type`). `retry_after` is
    in seconds.
    """

    def __init__(
        self,
        message: str,
        status_code: int | None = None,
        *,
        code: str | None = None,
        retry_after: float | None = None,
        problems: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.code = code
        self.retry_after = retry_after
        self.problems = problems or []


class MemoryAuthError(MemoryServerError):
    """The credentials are missing, invalid, or lack permission for the call."""


class MemoryConflictError(MemoryServerError):
    """The request conflicts with stored data or with another request."""


class MemoryPreconditionFailedError(MemoryConflictError):
    """The session's version differs from the version that the request requires."""


class MemoryRequestUnderWayError(MemoryConflictError):
    """The first request with this Idempotency-Key is still running or has crashed.

    Retry after `retry_after` seconds.
    """


class MemoryUnavailableError(MemoryServerError):
    """The server is unreachable or busy."""


class MemoryRateLimitError(MemoryUnavailableError):
    """The caller exceeded a limit. Retry after `retry_after` seconds."""


class MemoryTimeoutError(MemoryUnavailableError):
    """The server did not respond in time. It may have processed the request."""


_BY_STATUS: dict[int, type[MemoryServerError]] = {
    401: MemoryAuthError,
    403: MemoryAuthError,
    409: MemoryConflictError,
    412: MemoryPreconditionFailedError,
    429: MemoryRateLimitError,
    502: MemoryUnavailableError,
    503: MemoryUnavailableError,
    504: MemoryUnavailableError,
}


def error_of_response(response: httpx.Response) -> MemoryClientError:
    """Return the error for a non-2xx status. The response body must already have been read."""
    body = _json_object(response)
    message, problems = _message(response, body)
    if response.status_code == 404:
        return MemoryNotFoundError(message)
    if response.status_code < 400:
        return MemoryProtocolError(f"{_place(response)} answered {response.status_code}: is the base URL right? {message}".rstrip())
    code = body.get("code")
    kind = MemoryRequestUnderWayError if code == "request_under_way" else _BY_STATUS.get(response.status_code, MemoryServerError)
    return kind(
        message,
        response.status_code,
        code=code if isinstance(code, str) else None,
        retry_after=retry_after_of(response.headers),
        problems=problems,
    )


def error_of_exception(error: Exception) -> MemoryClientError | None:
    """Convert an httpx exception to a client error. Return None for other exceptions."""
    reason = str(error) or type(error).__name__
    match error:
        case httpx.TimeoutException():
            return MemoryTimeoutError(f"the memory server did not answer in time ({type(error).__name__}: {reason})")
        case httpx.UnsupportedProtocol() | httpx.LocalProtocolError() | httpx.InvalidURL() | httpx.CookieConflict():
            return MemoryProtocolError(f"the request cannot be sent, check the base URL: {reason}")
        case httpx.TransportError():
            return MemoryUnavailableError(f"the memory server cannot be reached ({type(error).__name__}: {reason})")
        case httpx.HTTPStatusError():
            return error_of_response(error.response)
        case httpx.HTTPError() | httpx.StreamError():
            return MemoryProtocolError(f"the memory server's answer cannot be read ({type(error).__name__}: {reason})")
        case _:
            return None


def retry_after_of(headers: Mapping[str, str]) -> float | None:
    """Return the delay in seconds from the `Retry-After` header, or None."""
    value = headers.get("Retry-After", "").strip()
    if not value:
        return None
    if value.isascii() and value.isdecimal():
        return float(value[:9])
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _place(response: httpx.Response) -> str:
    return f"{response.request.method} {response.request.url.path}"


def _json_object(response: httpx.Response) -> dict[str, Any]:
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", body) if isinstance(body, dict) else {}


def _message(response: httpx.Response, body: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    detail, answered = body.get("detail", body.get("message")), f"{_place(response)} answered {response.status_code}"
    if isinstance(detail, list):
        problems = [cast("dict[str, Any]", problem) for problem in cast("list[Any]", detail) if isinstance(problem, dict)]
        return "; ".join(map(_problem_line, problems))[:MAX_MESSAGE_CHARS] or answered, problems
    if isinstance(detail, str) and detail:
        hint = body.get("hint")
        return f"{detail}: {hint}"[:MAX_MESSAGE_CHARS] if isinstance(hint, str) else detail[:MAX_MESSAGE_CHARS], []
    text = response.text.strip()[:MAX_MESSAGE_CHARS]
    return answered + (f": {text}" if text else ""), []


def _problem_line(problem: Mapping[str, Any]) -> str:
    """Format a problem in a 422 response as `messages.0.content: must not be blank …`."""
    loc = problem.get("loc")
    parts = [str(part) for part in cast("list[Any]", loc)] if isinstance(loc, list) else []
    field = ".".join(parts[1:] if parts[:1] in (["body"], ["query"], ["path"], ["header"]) else parts)
    message = str(problem.get("msg", "is not accepted"))
    return message if not field or message.startswith(field) else f"{field}: {message}"
