"""Test that every httpx exception and every error status becomes a client error."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest

from agent_memory_client import errors, exceptions
from agent_memory_client.errors import (
    MemoryAuthError,
    MemoryClientError,
    MemoryConflictError,
    MemoryNotFoundError,
    MemoryPreconditionFailedError,
    MemoryProtocolError,
    MemoryRateLimitError,
    MemoryServerError,
    MemoryTimeoutError,
    MemoryUnavailableError,
    MemoryValidationError,
    error_of_exception,
    error_of_response,
    retry_after_of,
)

REQUEST = httpx.Request("GET", "http://memory/v1/health")
OF_HTTPX = sorted(
    (kind for _, kind in inspect.getmembers(httpx, inspect.isclass) if issubclass(kind, Exception)), key=lambda kind: kind.__name__
)


def an_instance(kind: type[Exception]) -> Exception:
    if issubclass(kind, httpx.HTTPStatusError):
        return kind("busy", request=REQUEST, response=httpx.Response(503, request=REQUEST))
    try:
        return kind("reason")
    except TypeError:
        return kind()


@pytest.mark.parametrize("kind", OF_HTTPX)
def test_every_httpx_exception_maps_to_a_client_error(kind: type[Exception]) -> None:
    assert isinstance(error_of_exception(an_instance(kind)), MemoryClientError)


def test_httpx_exception_list_includes_known_errors() -> None:
    assert {httpx.ConnectError, httpx.ReadTimeout, httpx.InvalidURL, httpx.TooManyRedirects, httpx.StreamClosed} <= set(OF_HTTPX)


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (httpx.ConnectError("no"), MemoryUnavailableError),
        (httpx.RemoteProtocolError("no"), MemoryUnavailableError),
        (httpx.ProxyError("no"), MemoryUnavailableError),
        (httpx.ReadTimeout("slow"), MemoryTimeoutError),
        (httpx.ConnectTimeout("slow"), MemoryTimeoutError),
        (httpx.UnsupportedProtocol("ftp"), MemoryProtocolError),
        (httpx.TooManyRedirects("loop"), MemoryProtocolError),
        (httpx.DecodingError("gzip"), MemoryProtocolError),
    ],
)
def test_network_errors_map_to_specific_error_types(error: Exception, wanted: type[MemoryClientError]) -> None:
    assert type(error_of_exception(error)) is wanted


def test_exceptions_outside_httpx_are_not_mapped() -> None:
    assert error_of_exception(KeyError("x")) is None


def answer(status: int, body: Any = None, headers: dict[str, str] | None = None) -> httpx.Response:
    return httpx.Response(status, json=body if body is not None else {"detail": "because"}, headers=headers, request=REQUEST)


@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        (307, MemoryProtocolError),
        (400, MemoryServerError),
        (401, MemoryAuthError),
        (403, MemoryAuthError),
        (404, MemoryNotFoundError),
        (405, MemoryServerError),
        (409, MemoryConflictError),
        (412, MemoryPreconditionFailedError),
        (413, MemoryServerError),
        (422, MemoryServerError),
        (429, MemoryRateLimitError),
        (500, MemoryServerError),
        (502, MemoryUnavailableError),
        (503, MemoryUnavailableError),
        (504, MemoryUnavailableError),
        (599, MemoryServerError),
    ],
)
def test_statuses_map_to_error_types(status: int, wanted: type[MemoryClientError]) -> None:
    error = error_of_response(answer(status))
    assert type(error) is wanted
    assert "because" in str(error)
    if isinstance(error, MemoryServerError):
        assert error.status_code == status


def test_validation_error_names_the_fields() -> None:
    problems = [
        {"type": "string_blank", "loc": ["body", "messages", 0, "content"], "msg": "messages.0.content: must not be blank"},
        {"type": "int_parsing", "loc": ["query", "limit"], "msg": "Input should be a valid integer"},
        "unexpected",
    ]
    error = error_of_response(answer(422, {"detail": problems, "code": "invalid_input"}))
    assert isinstance(error, MemoryServerError)
    assert str(error) == "messages.0.content: must not be blank; limit: Input should be a valid integer"
    assert error.problems == problems[:2]
    assert error.code == "invalid_input"


def test_not_found_error_contains_the_hint() -> None:
    error = error_of_response(answer(404, {"detail": "Session s not found", "hint": "check session_id"}))
    assert str(error) == "Session s not found: check session_id"


@pytest.mark.parametrize(
    "body", [b"", b"Internal Server Error", b"<html>busy</html>", b"[1]", b'"x"', b"\xff\xfe", b'{"detail": {"a": 1}}', b"[" * 100_000]
)
def test_foreign_error_bodies_become_short_server_errors(body: bytes) -> None:
    error = error_of_response(httpx.Response(500, content=body, request=REQUEST))
    assert isinstance(error, MemoryServerError)
    assert "500" in str(error)
    assert len(str(error)) < 700


def test_retry_after_accepts_seconds_and_dates() -> None:
    assert retry_after_of({}) is None
    assert retry_after_of({"Retry-After": "7"}) == 7.0
    assert retry_after_of({"Retry-After": "soon"}) is None
    assert retry_after_of({"Retry-After": "-1"}) is None
    assert retry_after_of({"Retry-After": format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)}) == 0.0
    assert (retry_after_of({"Retry-After": format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)}) or 0) > 3000
    error = error_of_response(answer(503, headers={"Retry-After": "7"}))
    assert isinstance(error, MemoryUnavailableError)
    assert error.retry_after == 7.0


def test_every_exported_error_derives_from_the_base_error() -> None:
    assert issubclass(MemoryValidationError, ValueError)
    ours = {kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)}
    assert all(issubclass(kind, MemoryClientError) for kind in ours)
    assert {kind.__name__ for kind in ours} == {name for name in vars(exceptions) if name.startswith("Memory")}
    assert MemoryServerError("no", 500).status_code == 500
