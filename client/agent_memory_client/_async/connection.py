"""What every call needs: the config, the request builders and the transport."""

from __future__ import annotations

from typing import Self

import httpx

from agent_memory_client._async.transport import Transport
from agent_memory_client._calls import Call, Calls
from agent_memory_client.config import MemoryClientConfig
from agent_memory_client.errors import MemoryNotFoundError


class Connection:
    """An open client, an async context manager. Every method raises an error of `agent_memory_client.errors`."""

    def __init__(self, config: MemoryClientConfig, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.config = config
        self._calls = Calls(config)
        self._transport = Transport(config, transport)

    async def close(self) -> None:
        """Closes the connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def _send(self, call: Call) -> httpx.Response:
        return await self._transport.send(call)

    async def _send_or_none(self, call: Call) -> httpx.Response | None:
        """The answer to `call`, or None for a 404."""
        try:
            return await self._send(call)
        except MemoryNotFoundError:
            return None
