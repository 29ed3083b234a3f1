"""Check the server's state."""

from __future__ import annotations

from typing import Any

from agent_memory_client._wire.answers import parse_object
from agent_memory_client._wire.requests import Call, query
from agent_memory_client.models import HealthCheckResponse, LoadHistory, LoadPeriod
from agent_memory_client.resources.base import Resource


class Server(Resource):
    """Check the server's state."""

    async def health(self) -> HealthCheckResponse:
        """Return the server's time, without checking its components."""
        return await self._read(HealthCheckResponse, Call("GET", "/v1/health"))

    async def ready(self) -> dict[str, Any]:
        """Return the state of the server's components.

        Raises MemoryUnavailableError (503) if a component is unavailable.
        """
        return parse_object(await self._send(Call("GET", "/v1/ready", idempotent=False)))

    async def load(self, period: LoadPeriod = "hour") -> LoadHistory:
        """Return the server's load over the last hour or day. Requires an operator."""
        return await self._read(LoadHistory, Call("GET", "/v1/metrics/history", query(period=period)))
