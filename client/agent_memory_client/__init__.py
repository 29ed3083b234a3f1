"""The client of the agent-memory server."""

from __future__ import annotations

from agent_memory_client._tools.calls import ToolCallResolutionResult, UnifiedToolCall
from agent_memory_client._version import __version__
from agent_memory_client._wire.answers import Acknowledgement, PromptAnswer
from agent_memory_client.config import MemoryClientConfig
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
from agent_memory_client.legacy import MemoryAPIClient, create_memory_client
from agent_memory_client.memory_client import MemoryClient
from agent_memory_client.models import (
    ClientMemoryRecord,
    CreateSummaryViewRequest,
    ForgetPolicy,
    ForgetResponse,
    MemoryMessage,
    MemoryPromptResponse,
    MemoryRecord,
    ModelNameLiteral,
    SummaryView,
    SummaryViewPartitionResult,
    Task,
    WorkingMemory,
    prompt_messages,
)
from agent_memory_client.sync import SyncMemoryAPIClient, SyncMemoryClient, create_memory_client_sync
from agent_memory_client.tool_schema import ToolSchema, ToolSchemaCollection

__all__ = [
    "Acknowledgement",
    "ClientMemoryRecord",
    "CreateSummaryViewRequest",
    "ForgetPolicy",
    "ForgetResponse",
    "MemoryAPIClient",
    "MemoryAuthError",
    "MemoryClient",
    "MemoryClientConfig",
    "MemoryClientError",
    "MemoryConflictError",
    "MemoryMessage",
    "MemoryNotFoundError",
    "MemoryPreconditionFailedError",
    "MemoryPromptResponse",
    "MemoryProtocolError",
    "MemoryRateLimitError",
    "MemoryRecord",
    "MemoryRequestUnderWayError",
    "MemoryServerError",
    "MemoryTimeoutError",
    "MemoryUnavailableError",
    "MemoryValidationError",
    "ModelNameLiteral",
    "PromptAnswer",
    "SummaryView",
    "SummaryViewPartitionResult",
    "SyncMemoryAPIClient",
    "SyncMemoryClient",
    "Task",
    "ToolCallResolutionResult",
    "ToolSchema",
    "ToolSchemaCollection",
    "UnifiedToolCall",
    "WorkingMemory",
    "__version__",
    "create_memory_client",
    "create_memory_client_sync",
    "prompt_messages",
]
