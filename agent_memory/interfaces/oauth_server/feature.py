"""Declare the services and Redis keys for the OAuth authorization server."""

from __future__ import annotations

from agent_memory.foundation.core.feature import Feature, KeySpace
from agent_memory.interfaces.oauth_server.connections import Connections

FEATURE = Feature(
    name="oauth_server",
    open=lambda foundation, services: services.add(Connections(foundation, services)),
    keys=(
        KeySpace("app:<client>", "string", "a registered OAuth client", "an hour; 90 days after its last use", personal=False),
        KeySpace("grant:<digest>", "hash", "an OAuth code or refresh token: client, API key, use", "30 days", personal=False),
    ),
)
