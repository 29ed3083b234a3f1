"""Arguments and answers of an agent's archive tools."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any

from pydantic import BaseModel, Field

from agent_memory_client.models._types import Instant
from agent_memory_client.models.memories import MemoryTypeEnum

PAGE = 5
"""How many memories a page of these tools has."""
MAX_PAGE = 1999

Tags = Annotated[list[str], Field(max_length=64)]
FirstDay = Annotated[date, Field(description="The first day, such as 2026-03-01 (UTC).")]
LastDay = Annotated[date, Field(description="The last day, such as 2026-03-31; it counts, too.")]
PageNumber = Annotated[int, Field(ge=0, le=MAX_PAGE, description=f"Which page of {PAGE} results, the first being 0.")]


class ArchiveInsertArguments(BaseModel):
    """What archival_memory_insert takes."""

    content: Annotated[str, Field(min_length=1, description="What to store.")]
    tags: Annotated[Tags | None, Field(description="Short words to find it by.")] = None


class ArchiveSearchArguments(BaseModel):
    """What archival_memory_search takes."""

    query: Annotated[str, Field(description="What you want to know, in plain words; empty for all.")]
    tags: Annotated[Tags | None, Field(description="Only what has one of these tags.")] = None
    start_date: FirstDay | None = None
    end_date: LastDay | None = None
    page: PageNumber = 0


class ConversationSearchArguments(BaseModel):
    """What conversation_search takes."""

    query: Annotated[str, Field(min_length=1, description="What was said, in plain words.")]
    page: PageNumber = 0


class ConversationDateArguments(BaseModel):
    """What conversation_search_date takes."""

    start_date: FirstDay
    end_date: LastDay
    page: PageNumber = 0


class ArchivedMemory(BaseModel):
    """A memory as the archive tells it."""

    id: str
    text: str
    """What it says."""
    tags: list[str] = Field(default_factory=list[str])
    """By what else it is found."""
    created_at: Instant
    """When it was stored or said."""


class ArchivePage(BaseModel):
    """A page of the archive, or of what was said."""

    memories: list[ArchivedMemory]
    """The best first; without a query the newest first."""
    total: int
    page: int
    """Which page it is."""
    has_more: bool
    """Whether there is another one."""


class ArchivedReceipt(BaseModel):
    """What was stored."""

    id: str
    status: str = "ok"
    """Says that it is stored."""


ARCHIVED_TYPES: dict[str, Any] = {"any": [MemoryTypeEnum.SEMANTIC, MemoryTypeEnum.EPISODIC, MemoryTypeEnum.PROCEDURAL]}
"""The filter by type for what is in the archive: all but the messages of conversations."""
SAID_TYPES: dict[str, Any] = {"eq": MemoryTypeEnum.MESSAGE}
"""The filter by type for what was said."""


def archive_of(user_id: str | None, agent_id: str | None) -> dict[str, Any]:
    """Return the filters of an archive: the user's with any agent; without a user the agent's own; else all."""
    if user_id:
        return {"user_id": {"eq": user_id}}
    return {"agent_id": {"eq": agent_id}} if agent_id else {}


def said_to(user_id: str | None, agent_id: str | None) -> dict[str, Any]:
    """Return the filters of conversations: the user's; for an agent without a user, those without a user."""
    if user_id:
        return {"user_id": {"eq": user_id}}
    return {"user_id": {"exists": False}} if agent_id else {}


def in_days(first: date | None, last: date | None) -> dict[str, Any] | None:
    """Return the filter for days in UTC, both included; None for any day."""
    bounds: dict[str, Any] = {}
    if first is not None:
        bounds["gte"] = datetime.combine(first, time(), UTC)
    if last is not None:
        bounds["lt"] = datetime.combine(last, time(), UTC) + timedelta(days=1)
    return bounds or None
