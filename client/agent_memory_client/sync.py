"""The blocking clients. The build generates `_sync/` from the asynchronous client."""

from __future__ import annotations

try:
    from agent_memory_client._sync.legacy import SyncMemoryAPIClient, create_memory_client_sync
    from agent_memory_client._sync.memory_client import SyncMemoryClient
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("agent_memory_client._sync"):
        raise
    raise ImportError(
        "the blocking client is not made yet: run `make dev`, or `python client/scripts/make_sync.py` in a checkout of the repository"
    ) from error

__all__ = ["SyncMemoryAPIClient", "SyncMemoryClient", "create_memory_client_sync"]
