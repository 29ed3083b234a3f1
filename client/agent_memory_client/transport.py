"""Send requests with httpx."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from copy import copy
from typing import Self
from urllib.parse import quote

import httpx

from agent_memory_client._wire.attempts import FAILURES, Attempts, body_of, headers_of
from agent_memory_client._wire.pools import AsyncPools
from agent_memory_client._wire.requests import Call
from agent_memory_client.config import MemoryClientConfig
from agent_memory_client.errors import MemoryClientError, MemoryProtocolError, MemoryValidationError, error_of_exception, error_of_response
from agent_memory_client.models import ACTING_USER_HEADER, MEDIA_TYPE


class Transport:
    """Connections to one server, usable from any number of event loops.

    `transport` replaces httpx's default transport, and `sleep` replaces the wait between retries.
    """

    def __init__(
        self,
        config: MemoryClientConfig,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._max_retries = config.max_retries
        self._timeout = config.timeout
        self._sleep = sleep
        self.acting_headers: dict[str, str] = {}
        headers = headers_of(config)

        def make_pool() -> httpx.AsyncClient:
            # No redirects: the API does not use them for these calls, and another host would receive the API key.
            return httpx.AsyncClient(base_url=config.base_url, timeout=config.timeout, headers=headers, transport=transport)

        try:
            self._pools = AsyncPools(make_pool)
        except (httpx.InvalidURL, ValueError) as error:
            raise MemoryProtocolError(f"the client cannot be set up, check the base URL: {error}") from error

    def acting_for(self, user_id: str) -> Self:
        """Return a transport that shares these connections but acts only for one user.

        Raises MemoryValidationError if `user_id` is empty.
        """
        if not user_id.strip():
            raise MemoryValidationError("user_id: must not be empty")
        acting = copy(self)
        acting.acting_headers = {ACTING_USER_HEADER: quote(user_id, safe="")}
        return acting

    async def close(self) -> None:
        """Close the connections. Requests in progress fail."""
        await self._pools.close()

    async def send(self, call: Call) -> httpx.Response:
        """Send `call` with retries, and return a 2xx response. Raises MemoryClientError."""
        if self._pools.is_closed:
            raise MemoryClientError("the client has been closed: create a new one")
        body = body_of(call)
        attempts = Attempts(call, self._max_retries)
        while True:
            try:
                response = await self._request(call, body)
            except FAILURES as error:
                wait = attempts.wait_after_error(error)
            else:
                if response.is_success:
                    return response
                wait = attempts.wait_after_refusal(response)
            await self._sleep(wait)

    async def lines(self, call: Call) -> AsyncIterator[bytes]:
        """Yield the lines of a long response, without line endings and without retries.

        Raises MemoryClientError.
        """
        rest = b""
        try:
            pool = await self._pools.current()
            async with pool.stream(call.method, call.path, params=call.params, headers={**call.headers, **self.acting_headers}) as response:
                if not response.is_success:
                    await response.aread()
                    raise error_of_response(response)
                async for piece in response.aiter_bytes():
                    *whole, rest = (rest + piece).split(b"\n")
                    for line in whole:
                        yield line
        except FAILURES as error:
            raise (error_of_exception(error) or MemoryClientError(str(error))) from error
        if rest:
            yield rest

    async def _request(self, call: Call, body: bytes | None) -> httpx.Response:
        media = "application/json" if call.lines is None else MEDIA_TYPE
        headers = {**({"Content-Type": media} if body is not None else {}), **call.headers, **self.acting_headers}
        timeout = self._timeout + call.wait
        pool = await self._pools.current()
        return await pool.request(call.method, call.path, params=call.params, content=body, headers=headers, timeout=timeout)
