"""The server itself."""

from __future__ import annotations

from typing import Any

from agent_memory_client._wire.answers import parse_object
from agent_memory_client._wire.requests import Call
from agent_memory_client.models import HealthCheckResponse
from agent_memory_client.resources.base import Resource


class Server(Resource):
    """Whether the server lives, and whether it can work."""

    async def health(self) -> HealthCheckResponse:
        """The server's clock: the process answers. Says nothing about its engines."""
        return await self._read(HealthCheckResponse, Call("GET", "/v1/health"))

    async def ready(self) -> dict[str, Any]:
        """What the server says about its engines. Raises MemoryUnavailableError (503) when one is away."""
        return parse_object(await self._send(Call("GET", "/v1/ready", idempotent=False)))
