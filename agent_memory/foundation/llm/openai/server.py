"""Call an OpenAI-compatible server with limits and a circuit breaker."""

from __future__ import annotations

import asyncio
import email.utils
import json
import math
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

import httpx2
import openai
from pydantic import SecretStr

from agent_memory.foundation.core.errors import AgentMemoryError, ContextExceeded, ModelAnswerInvalid, ModelUnavailable, StartupError
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.settings import ModelSettings
from agent_memory.foundation.llm.context_refusals import ContextOverflow, overflow
from agent_memory.foundation.llm.model_context import ModelContext
from agent_memory.foundation.llm.openai.circuit_breaker import Breaker
from agent_memory.foundation.llm.openai.streaming import Streaming

log = get_logger(__name__)

OPENAI_URL = "https://api.openai.com/v1"
NO_KEY = "not-needed"
_RETRY_PAUSE = 0.5  # seconds before the one retry of a background call
_MAX_RETRY_AFTER = 3600
# Shorter strings also occur in normal words ("key-value", the "x" of "exceeds").
_SHORTEST_SECRET = 8
_KEY_LIKE = re.compile(rf"\b(sk-|key-)[\w*-]{{{_SHORTEST_SECRET},}}")
# A background answer may take this many timeouts while tokens arrive.
_MOST_SILENCES = 30
_FAIR_CHANCE = 0.2  # seconds; a shorter wait says nothing about the server
_TOO_LONG = re.compile(
    r"context.{0,20}(length|window|size)|too (long|large|many tokens)|maximum.{0,30}(token|length)|exceed", re.IGNORECASE
)
# Work waits at most this long for information about a server.
_LOOK_SECONDS = 2.0
_MOST_ANSWER_BYTES = 4_000_000  # bytes; any provider's longest list of models has about one million

# Common servers close idle connections after five seconds, so we close them earlier.
_CONNECTIONS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=4.0)
_VERSION_AT_END = re.compile(r"/v\d[\w.]*/?\Z")

Result = TypeVar("Result")
Alive = Callable[[], None]
"""A function to call when data arrives."""


class RequestRefused(Exception):
    """The server rejected a request's parameters (4xx). The caller may try others."""

    def __init__(self, status: int, detail: str, overflow: ContextOverflow | None = None) -> None:
        """`overflow` is set if the request exceeded the context window."""
        super().__init__(f"HTTP {status}: {detail}")
        self.status = status
        self.detail = detail
        self.overflow = overflow

    @property
    def too_long(self) -> bool:
        """True if the input may have been too long for the model."""
        return self.overflow is not None or _TOO_LONG.search(self.detail) is not None

    def as_error(self, description: str) -> AgentMemoryError:
        """Return the error to raise if there are no other parameters to try."""
        if self.status == 404:
            # Most APIs are below /v1. A refusal of an unknown model names the model.
            has_version = _VERSION_AT_END.search(description) is not None or "model" in self.detail.casefold()
            hint = "" if has_version else "; should OPENAI_BASE_URL (or EMBEDDING_BASE_URL) end in /v1?"
            message = f"{description}: not found (HTTP 404): {self.detail}{hint}"
            return ModelUnavailable(message, retry_after=60, reason="not_found")
        message = f"{description}: refused (HTTP {self.status}): {self.detail}"
        if self.overflow is not None:
            return ContextExceeded(message, reason="too_long", status=self.status)
        return ModelAnswerInvalid(message, reason="too_long" if self.too_long else "refused", status=self.status)


class ModelServer:
    """An OpenAI-compatible server, which embeddings and chat may share."""

    def __init__(self, base_url: str | None, api_key: SecretStr | None, models: ModelSettings) -> None:
        """Create clients and limits. Raises StartupError if the address or key is invalid."""
        self.url = (base_url or OPENAI_URL).strip()
        self.shown_url = shown_url(self.url)
        self._key = (api_key.get_secret_value().strip() if api_key else "") or NO_KEY
        if not self._key.isascii() or not self._key.isprintable():
            raise StartupError("OPENAI_API_KEY (or EMBEDDING_API_KEY) contains characters that cannot be sent: copy the key again")
        if urlsplit(self.url).scheme not in ("http", "https") or not urlsplit(self.url).hostname:
            raise StartupError(f"OPENAI_BASE_URL (or EMBEDDING_BASE_URL) is not an http address: {self.shown_url}")
        self._timeout = models.timeout_seconds  # for calls without their own timeout
        self.breaker = Breaker(self.shown_url)
        self.rungs: dict[str, int] = {}
        """Maps each model to the response format (rung) that the server accepts."""
        self.token_parameters: dict[str, str | None] = {}
        """Maps each model to the server's parameter for the maximum response length."""
        self.streaming: dict[str, Streaming] = {}
        """Maps each model to how the server streams its responses."""
        self.contexts: dict[str, ModelContext] = {}
        # Two pools: a query never waits behind background calls.
        self._background = asyncio.Semaphore(models.max_concurrent_calls)
        self._urgent = asyncio.Semaphore(models.max_concurrent_calls)
        # The SDK must not retry: on 429 it would wait up to a minute and occupy our slot. No redirects: they may lead
        # to a server that the operator did not name. No timeouts: `_guarded` limits each call.
        # aiohttp parses HTTP in C. It refuses credentials in the address if the SDK also sends them in a header.
        self.url, credentials = _split_credentials(self.url)
        http = openai.DefaultAioHttpClient(follow_redirects=False, timeout=None, limits=_CONNECTIONS, auth=credentials)
        self._client = openai.AsyncOpenAI(base_url=self.url, api_key=self._key, max_retries=0, timeout=None, http_client=http)

    async def call(
        self, description: str, request: Callable[[openai.AsyncOpenAI], Awaitable[Result]], *, timeout: float | None = None
    ) -> Result:
        """Run `request` within `timeout` seconds, including the wait for a free slot.

        If `timeout` is None, the server's timeout applies to each attempt, and a connection or
        server failure is retried once. Raises ModelUnavailable, ModelAnswerInvalid, or
        RequestRefused.
        """
        if timeout is None:
            async with self._background:
                return await self._with_one_retry(description, lambda _: request(self._client))
        deadline = Deadline(timeout)
        if self._urgent.locked():
            try:
                async with asyncio.timeout(timeout):
                    await self._urgent.acquire()
            except TimeoutError as error:
                raise ModelUnavailable(
                    f"{description}: no free connection within {timeout:g} s, because too many calls are running", reason="busy"
                ) from error
        else:
            await self._urgent.acquire()  # without waiting
        try:
            return await self._guarded(description, lambda _: request(self._client), deadline.seconds_left or 0.0)
        finally:
            self._urgent.release()

    async def stream(self, description: str, request: Callable[[openai.AsyncOpenAI, Alive], Awaitable[Result]]) -> Result:
        """Run a background `request`, which must call its second argument when data arrives.

        The server's timeout applies to each pause. The entire call may take `_MOST_SILENCES` times
        as long. Raises the same errors as `call`.
        """
        async with self._background:
            return await self._with_one_retry(description, lambda alive: request(self._client, alive))

    def address(self, path: str) -> str:
        """Return the address of a path in the form that the SDK resolves fastest."""
        return path if "?" in self.url else self.url.rstrip("/") + path

    async def look(self, url: str) -> Any:
        """Return the JSON value at an address, or None on failure. Never raises."""
        if self.breaker.is_open:
            return None
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                answer = await self._client.get(url, cast_to=httpx2.Response)
            return json.loads(answer.content) if len(answer.content) <= _MOST_ANSWER_BYTES else None
        except Exception as error:  # noqa: BLE001 - any failure means that the server gave no information
            log.debug("model server does not describe its models", url=self.shown_url, error_type=type(error).__name__)
            return None

    async def close(self) -> None:
        await self._client.close()

    async def _with_one_retry(self, description: str, request: Callable[[Alive], Awaitable[Result]]) -> Result:
        try:
            return await self._guarded(description, request, self._timeout)
        except ModelUnavailable as error:
            if error.data.get("reason") not in ("connection", "server_error") or self.breaker.is_open:
                raise
        await asyncio.sleep(_RETRY_PAUSE)
        return await self._guarded(description, request, self._timeout)

    async def _guarded(self, description: str, request: Callable[[Alive], Awaitable[Result]], timeout: float) -> Result:
        self.breaker.admit_call()
        now, began = asyncio.get_running_loop().time, False
        last = now() + _MOST_SILENCES * timeout
        try:
            # The SDK's timeout would apply per read, so a server that drips bytes could block us forever. Only tokens
            # extend this timeout.
            async with asyncio.timeout(timeout) as limit:

                def alive() -> None:
                    nonlocal began
                    began = True
                    limit.reschedule(min(now() + timeout, last))

                result = await request(alive)
        except asyncio.CancelledError:
            self.breaker.note_abandoned()
            raise
        except Exception as error:  # The SDK leaks AttributeError, IndexError, ValueError and more for answers that it does not expect.
            translated = self._translate(description, error, timeout)
            reason = translated.data.get("reason") if isinstance(translated, ModelUnavailable) else None
            if reason == "timeout" and (began or timeout < _FAIR_CHANCE):
                self.breaker.note_abandoned()
            elif reason in ("connection", "timeout", "server_error"):
                self.breaker.note_failure()
            else:
                self.breaker.note_success()
            raise translated from error
        self.breaker.note_success()
        return result

    def _translate(self, description: str, error: Exception, timeout: float) -> Exception:
        if isinstance(error, AgentMemoryError):
            return error
        # Calls have no connect timeout: the transport raises ConnectTimeout if the server closes the connection.
        if isinstance(error, TimeoutError | openai.APITimeoutError) and not isinstance(error.__cause__, httpx2.ConnectTimeout):
            return ModelUnavailable(f"{description}: no answer within {timeout:g} s (MODEL_TIMEOUT_SECONDS)", reason="timeout")
        if isinstance(error, openai.APIConnectionError | httpx2.TransportError):
            return ModelUnavailable(f"{description}: cannot connect to {self.shown_url}", reason="connection")
        if isinstance(error, openai.APIStatusError):
            return self._of_status(description, error)
        if isinstance(error, openai.APIError) and not isinstance(error, openai.APIResponseValidationError):
            # The error came in the middle of an answer.
            detail = self._without_secrets(error.message)
            return ModelUnavailable(f"{description}: the server broke off its answer: {detail}", reason="server_error")
        return ModelAnswerInvalid(f"{description}: the answer cannot be read ({type(error).__name__})", reason="unreadable")

    def _of_status(self, description: str, error: openai.APIStatusError) -> Exception:
        status, detail = error.status_code, self._without_secrets(error.message)
        if status in (401, 403):  # leave out the server's message, since some servers repeat the key in it
            return ModelUnavailable(f"{description}: {self.shown_url} refuses our key (HTTP {status})", retry_after=60, reason="auth")
        if 300 <= status < 400:
            message = f"{description}: {self.shown_url} redirects elsewhere (HTTP {status}), which is not followed: set the final address"
            return ModelUnavailable(message, retry_after=60, reason="redirect")
        refusal = overflow(status, f"{error.message} {error.body}")
        if refusal is not None:  # whatever the status is, sending the request again does not help
            return RequestRefused(status, detail, refusal)
        if status == 429:
            wait = retry_after_seconds(error.response.headers.get("retry-after"))
            return ModelUnavailable(f"{description}: too many requests (HTTP 429): {detail}", retry_after=wait, reason="rate_limit")
        if status >= 500 or status in (408, 409, 425):
            wait = retry_after_seconds(error.response.headers.get("retry-after"))
            return ModelUnavailable(f"{description}: HTTP {status}: {detail}", retry_after=wait, reason="server_error")
        return RequestRefused(status, detail)

    def _without_secrets(self, text: str) -> str:
        if self._key != NO_KEY and len(self._key) >= _SHORTEST_SECRET:
            text = text.replace(self._key, "***")
        return _KEY_LIKE.sub("***", text)[:300]


def _split_credentials(url: str) -> tuple[str, tuple[str, str] | None]:
    """Return the address with credentials removed, and the credentials or None."""
    parts = urlsplit(url)
    if parts.username is None:
        return url, None
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    return urlunsplit(bare), (unquote(parts.username), unquote(parts.password or ""))


def shown_url(url: str) -> str:
    """Return the address with its user, password, and query string removed."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        host = f"[{host}]" if ":" in host else host
        return urlunsplit((parts.scheme, f"{host}:{parts.port}" if parts.port else host, parts.path.rstrip("/"), "", ""))
    except ValueError:
        return "(an address that cannot be read)"


def retry_after_seconds(header: str | None) -> int:
    """Convert a Retry-After header (number or date) to whole seconds, from 1 to 3600.

    Return 1 if the header is missing or invalid.
    """
    if not header:
        return 1
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(header).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return 1
    return min(max(1, math.ceil(seconds)), _MAX_RETRY_AFTER) if math.isfinite(seconds) else 1


class Deadline:
    """A deadline shared by several calls. `seconds_left` is None if there is no timeout."""

    def __init__(self, timeout: float | None) -> None:
        self._end = None if timeout is None else time.monotonic() + timeout

    @property
    def seconds_left(self) -> float | None:
        return None if self._end is None else max(0.0, self._end - time.monotonic())
