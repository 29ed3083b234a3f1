"""Call a server's public HTTP API."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any
from urllib.parse import urlsplit

import httpx

from agent_memory.foundation.core.errors import StartupError

_POLL_SECONDS = 0.05
_SAY_SECONDS = 20.0


class Api:
    """An HTTP client for a server. Raises StartupError if the server does not respond with JSON."""

    def __init__(self, url: str) -> None:
        # Use a proxy from the environment only for servers on other machines.
        local = urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
        self._url = url
        self._client = httpx.AsyncClient(base_url=url.rstrip("/"), timeout=120, trust_env=not local)

    async def __aenter__(self) -> Api:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._client.aclose()

    async def call(self, method: str, path: str, body: object = None) -> Any:
        """Return the parsed response. Raises StartupError if the status is 300 or higher."""
        status, answer = await self.exchange(method, path, body)
        if status >= 300:
            raise StartupError(f"the server at {self._url} answers {method} {path} with {status}: {str(answer)[:300]}")
        return answer

    async def exchange(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Return the status and the parsed response. Error statuses do not raise."""
        try:
            response = await self._client.request(method, path, json=body)
            answer: Any = response.json() if response.content else None
        except httpx.InvalidURL as error:
            raise StartupError(f"{self._url} is not a server's URL") from error
        except (httpx.HTTPError, ValueError) as error:
            reason = error or type(error).__name__
            raise StartupError(f"the server at {self._url} does not answer {method} {path}: {reason}") from error
        return response.status_code, answer


async def wait_for_work(api: Api, seconds: float) -> dict[str, dict[str, Any]]:
    """Wait until there is no pending background work, and return the final state.

    Raises StartupError after `seconds`.
    """
    deadline, last_note = time.monotonic() + seconds, time.monotonic()
    while True:
        work: dict[str, dict[str, Any]] = (await api.call("GET", "/v1/ready"))["checks"].get("work", {})
        pending, now = sum(kind["pending"] for kind in work.values()), time.monotonic()
        if not pending:
            return work
        if now > deadline:
            raise StartupError(f"background work is still pending after {seconds:.0f} s: {work}")
        if now - last_note > _SAY_SECONDS:
            say(f"{pending} tasks of background work are pending")
            last_note = now
        await asyncio.sleep(_POLL_SECONDS)


def say(line: str) -> None:
    """Print progress to stderr, because stdout is used for results."""
    print(f"agent-memory: {line}", file=sys.stderr, flush=True)
