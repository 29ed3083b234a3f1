"""Provides the archived client's names: `MemoryAPIClient` and `create_memory_client`."""

from __future__ import annotations

from agent_memory_client.config import MemoryClientConfig
from agent_memory_client.errors import MemoryClientError
from agent_memory_client.memory_client import MemoryClient


class MemoryAPIClient(MemoryClient):
    """A `MemoryClient` under the archived client's name."""


async def create_memory_client(
    base_url: str,
    timeout: float = 30.0,
    default_namespace: str | None = None,
    default_model_name: str | None = None,
    default_context_window_max: int | None = None,
    *,
    api_key: str | None = None,
    bearer_token: str | None = None,
    max_retries: int = 2,
) -> MemoryAPIClient:
    """Create a client and check that the server responds.

    Raises MemoryClientError if the server does not respond.
    """
    config = MemoryClientConfig(
        base_url=base_url,
        timeout=timeout,
        default_namespace=default_namespace,
        default_model_name=default_model_name,
        default_context_window_max=default_context_window_max,
        api_key=api_key,
        bearer_token=bearer_token,
        max_retries=max_retries,
    )
    client = MemoryAPIClient(config)
    try:
        await client.server.health()
    except MemoryClientError as error:
        await client.close()
        raise MemoryClientError(f"no memory server answers at {base_url}: {error}") from error
    return client
