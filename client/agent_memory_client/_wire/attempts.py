"""Build request bodies and headers, and decide whether and when to retry."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

import httpx

from agent_memory_client._version import __version__
from agent_memory_client._wire.requests import IDEMPOTENCY_KEY, Call
from agent_memory_client.config import MemoryClientConfig
from agent_memory_client.errors import (
    MemoryClientError,
    MemoryRequestUnderWayError,
    MemoryValidationError,
    error_of_exception,
    error_of_response,
    retry_after_of,
)
from agent_memory_client.models import MEMORY_TYPES_HEADER, MemoryTypeEnum

RETRIED_STATUSES = frozenset({429, 502, 503, 504})
NOT_RECEIVED = 408
"""The server did not receive the whole request. Any request may be resent (RFC 9110, 15.5.9)."""
FIRST_WAIT_SECONDS = 0.1
MAX_WAIT_SECONDS = 10.0

FAILURES = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, httpx.CookieConflict, UnicodeError)
"""Exceptions from a failed request. UnicodeError means text that cannot be encoded."""

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_BROKEN_OFF = (*_NEVER_SENT, httpx.ReadError, httpx.WriteError, httpx.CloseError, httpx.RemoteProtocolError, httpx.WriteTimeout)


def headers_of(config: MemoryClientConfig) -> dict[str, str]:
    """Return the headers to send with every request.

    Raises MemoryValidationError if the credentials are not valid in a header.
    """
    for name, secret in (("api_key", config.api_key), ("bearer_token", config.bearer_token)):
        if secret is not None and not (secret and secret.isascii() and secret.isprintable()):
            raise MemoryValidationError(f"{name}: must be printable ASCII and not empty")
    headers = {"User-Agent": f"agent-memory-api-client/{__version__}", "X-Client-Version": __version__, "Accept": "application/json"}
    headers[MEMORY_TYPES_HEADER] = MemoryTypeEnum.PROCEDURAL.value
    if config.api_key is not None:
        headers["X-API-Key"] = config.api_key
    if config.bearer_token is not None:
        headers["Authorization"] = f"Bearer {config.bearer_token}"
    return headers


def body_of(call: Call) -> bytes | None:
    """Return the body of `call` as UTF-8.

    Raises MemoryValidationError if the body cannot be encoded as JSON.
    """
    if call.json is None:
        return call.lines
    try:
        return json.dumps(call.json, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        # The server replaces lone surrogates and reports them. JSON can represent them only as escapes.
        return json.dumps(call.json, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise MemoryValidationError(f"the request cannot be sent as JSON: {error}") from error


def wait_before(attempt: int, response: httpx.Response | None) -> float | None:
    """Return the delay in seconds before retry `attempt` (1, 2, …).

    Return None if the server requests a delay that is too long.
    """
    server_wait = retry_after_of(response.headers) if response is not None else None
    if server_wait is not None and server_wait > MAX_WAIT_SECONDS:
        return None
    backoff = min(MAX_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** (attempt - 1))
    return max(server_wait or 0.0, backoff * random.uniform(0.5, 1.0))


@dataclass(slots=True)
class Attempts:
    """Counts a call's attempts and decides when to retry.

    An idempotent call is retried after a broken connection, after status 429, 502, 503 or 504, and
    while its Idempotency-Key is in use. Other calls are retried only if the server did not receive
    the entire request. Calls are never retried after a response timeout.
    """

    call: Call
    max_retries: int
    failed: int = 0
    under_way: int = 0

    def wait_after_error(self, error: Exception) -> float:
        """Return the delay in seconds after one of the errors in `FAILURES`.

        Raises MemoryClientError after the last attempt.
        """
        if isinstance(error, UnicodeError):
            raise MemoryValidationError(f"the request cannot be sent: {error}") from error
        wait = self._wait(isinstance(error, _BROKEN_OFF) if self.call.idempotent else isinstance(error, _NEVER_SENT), None)
        if wait is None:
            raise (error_of_exception(error) or MemoryClientError(str(error))) from error
        return wait

    def wait_after_refusal(self, response: httpx.Response) -> float:
        """Return the delay in seconds after a non-2xx status.

        Raises MemoryClientError after the last attempt.
        """
        error = error_of_response(response)
        if isinstance(error, MemoryRequestUnderWayError) and self.call.idempotent and IDEMPOTENCY_KEY in self.call.headers:
            # The first request usually ends soon. If its process has crashed, the key is free after `Retry-After`.
            self.under_way += 1
            last = self.failed + 1 >= self.max_retries
            wait = self._wait(True, response if last or self.under_way > 1 else None)
        else:
            repeatable = self.call.idempotent and response.status_code in RETRIED_STATUSES
            wait = self._wait(repeatable or response.status_code == NOT_RECEIVED, response)
        if wait is None:
            raise error
        return wait

    def _wait(self, repeatable: bool, response: httpx.Response | None) -> float | None:
        self.failed += 1
        return wait_before(self.failed, response) if repeatable and self.failed <= self.max_retries else None
