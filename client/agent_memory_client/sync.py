# Made of agent_memory_client/client.py by client/scripts/make_sync.py: change that file, then run the script.
"""The client: `SyncMemoryAPIClient`, and `create_memory_client_sync`, which checks that the server answers."""

from __future__ import annotations

from agent_memory_client._sync.tool_calls import ToolCalls
from agent_memory_client.config import MemoryClientConfig
from agent_memory_client.errors import MemoryClientError
from agent_memory_client.tools import ToolCallResolutionResult, UnifiedToolCall


class SyncMemoryAPIClient(ToolCalls):
    """The client of a memory server; use it as an context manager or `close()` it.

    The defaults of its config (namespace, model, context window) are used wherever a call does not name its own.
    """


def create_memory_client_sync(
    base_url: str,
    timeout: float = 30.0,
    default_namespace: str | None = None,
    default_model_name: str | None = None,
    default_context_window_max: int | None = None,
    *,
    api_key: str | None = None,
    bearer_token: str | None = None,
    max_retries: int = 2,
) -> SyncMemoryAPIClient:
    """A client whose server has answered once. Raises MemoryClientError when it does not."""
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
    client = SyncMemoryAPIClient(config)
    try:
        client.health_check()
    except MemoryClientError as error:
        client.close()
        raise MemoryClientError(f"no memory server answers at {base_url}: {error}") from error
    return client


__all__ = ["MemoryClientConfig", "SyncMemoryAPIClient", "ToolCallResolutionResult", "UnifiedToolCall", "create_memory_client_sync"]
