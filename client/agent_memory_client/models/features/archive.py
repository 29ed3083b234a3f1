"""Arguments and results of the tools for an agent's archive."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Annotated, Any

from pydantic import BaseModel, Field

from agent_memory_client.models._types import Instant, MemoryText
from agent_memory_client.models._types import Tags as Tags
from agent_memory_client.models.memories import MemoryTypeEnum

PAGE = 5
"""The number of memories per page in the archive tools."""
MAX_PAGE = 1999

FirstDay = Annotated[date, Field(description="The first day, such as 2026-03-01 (UTC).")]
LastDay = Annotated[date, Field(description="The last day (inclusive), such as 2026-03-31.")]
PageNumber = Annotated[int, Field(ge=0, le=MAX_PAGE, description=f"The number of a page of {PAGE} results; the first page is 0.")]


class ArchiveInsertArguments(BaseModel):
    """Arguments of archival_memory_insert."""

    content: Annotated[MemoryText, Field(min_length=1, description="What to store.")]
    tags: Annotated[Tags, Field(description="Short tags to find the memory by.")] = None


class ArchiveSearchArguments(BaseModel):
    """Arguments of archival_memory_search."""

    query: Annotated[str, Field(description="What you want to know, in plain words. An empty query lists all entries.")]
    tags: Annotated[Tags, Field(description="Only entries with one of these tags.")] = None
    start_date: FirstDay | None = None
    end_date: LastDay | None = None
    page: PageNumber = 0


class ConversationSearchArguments(BaseModel):
    query: Annotated[str, Field(min_length=1, description="The messages to find, in plain words.")]
    page: PageNumber = 0


class ConversationDateArguments(BaseModel):
    """Arguments of conversation_search_date."""

    start_date: FirstDay
    end_date: LastDay
    page: PageNumber = 0


class ArchivedMemory(BaseModel):
    """An archived memory or a message from a conversation."""

    id: str
    text: str
    """The memory's text."""
    tags: list[str] = Field(default_factory=list[str])
    """The memory's tags. Searches can filter by them."""
    created_at: Instant
    """The time when the memory was stored, or the message was sent."""


class ArchivePage(BaseModel):
    """A page of archived memories or messages."""

    memories: list[ArchivedMemory]
    """The memories, best first. Without a query, newest first."""
    total: int
    page: int
    """The page number, starting at 0."""
    has_more: bool
    """True if there is another page."""


class ArchivedReceipt(BaseModel):
    """Confirmation that a memory was stored."""

    id: str
    status: str = "ok"
    """`ok` if the memory was stored."""


ARCHIVED_TYPES: dict[str, Any] = {"any": [MemoryTypeEnum.SEMANTIC, MemoryTypeEnum.EPISODIC, MemoryTypeEnum.PROCEDURAL]}
"""Filter for archived memories: all types except conversation messages."""
MESSAGE_TYPES: dict[str, Any] = {"eq": MemoryTypeEnum.MESSAGE}
"""Filter for conversation messages."""


def archive_of(user_id: str | None, agent_id: str | None) -> dict[str, Any]:
    """Return the filters that select an archive.

    The archive consists of the user's memories, or of the agent's memories if there is no user. If
    there is neither, there are no filters.
    """
    if user_id:
        return {"user_id": {"eq": user_id}}
    return {"agent_id": {"eq": agent_id}} if agent_id else {}


def conversation_of(user_id: str | None, agent_id: str | None) -> dict[str, Any]:
    """Return the filters that select the user's conversations.

    For an agent that has no user, select conversations that have no user.
    """
    if user_id:
        return {"user_id": {"eq": user_id}}
    return {"user_id": {"exists": False}} if agent_id else {}


def in_days(first: date | None, last: date | None) -> dict[str, Any] | None:
    """Return a filter for a range of days in UTC, including both ends, or None for all days."""
    bounds: dict[str, Any] = {}
    if first is not None:
        bounds["gte"] = datetime.combine(first, time(), UTC)
    if last is not None:
        bounds["lte"] = datetime.combine(last, time.max, UTC)
    return bounds or None
