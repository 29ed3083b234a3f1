"""The errors, under the archived client's module name."""

from __future__ import annotations

from agent_memory_client.errors import (
    MemoryAuthError,
    MemoryClientError,
    MemoryConflictError,
    MemoryNotFoundError,
    MemoryPreconditionFailedError,
    MemoryProtocolError,
    MemoryRateLimitError,
    MemoryRequestUnderWayError,
    MemoryServerError,
    MemoryTimeoutError,
    MemoryUnavailableError,
    MemoryValidationError,
)

__all__ = [
    "MemoryAuthError",
    "MemoryClientError",
    "MemoryConflictError",
    "MemoryNotFoundError",
    "MemoryPreconditionFailedError",
    "MemoryProtocolError",
    "MemoryRateLimitError",
    "MemoryRequestUnderWayError",
    "MemoryServerError",
    "MemoryTimeoutError",
    "MemoryUnavailableError",
    "MemoryValidationError",
]
