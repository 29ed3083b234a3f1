"""The search filters under the archived client's module name."""

from __future__ import annotations

from agent_memory_client.models.filters import (
    CreatedAt,
    DateFilter,
    Entities,
    EventDate,
    ExtractionStrategy,
    LastAccessed,
    MemoryType,
    Namespace,
    SessionId,
    TagFilter,
    Topics,
    UserId,
)

__all__ = [
    "CreatedAt",
    "DateFilter",
    "Entities",
    "EventDate",
    "ExtractionStrategy",
    "LastAccessed",
    "MemoryType",
    "Namespace",
    "SessionId",
    "TagFilter",
    "Topics",
    "UserId",
]
