"""What became of memories: their versions, what they rest on, and changes that can be undone."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel

from agent_memory_client.models._types import Instant
from agent_memory_client.models.memories import Evidence, MemoryRecord
from agent_memory_client.models.messages import MemoryMessage


class ChangeKindEnum(StrEnum):
    """What was done to memories."""

    UPDATE = "update"
    SUPERSEDE = "supersede"
    MERGE = "merge"
    FORGET = "forget"
    UNDO = "undo"


class ChangeStateEnum(StrEnum):
    """Where a change stands: done, undone again, or a proposal that waits, was approved (then it is applied) or rejected."""

    APPLIED = "applied"
    UNDONE = "undone"
    PROPOSED = "proposed"
    REJECTED = "rejected"


class ChangedMemory(BaseModel):
    """A memory before and after a change (None: it was not there), and the fields that differ, each as [before, after]."""

    memory_id: str
    before: MemoryRecord | None = None
    after: MemoryRecord | None = None
    diff: dict[str, list[Any]]


class Change(BaseModel):
    """A recorded change. `actor` is what did it; changes of one run share a `batch_id`."""

    id: str
    kind: ChangeKindEnum
    state: ChangeStateEnum
    batch_id: str
    at: Instant
    actor: str
    reason: str | None = None
    strategy: str | None = None
    model: str | None = None
    prompt_version: str | None = None
    memories: list[ChangedMemory]


class ChangeListResponse(BaseModel):
    """A page of changes, the newest first."""

    changes: list[Change]
    total: int
    next_offset: int | None = None


class MemoryVersion(BaseModel):
    """A version of a memory, when the server knew it (`retired_at` None: it is the current one), and the change that ended it."""

    version: int
    record: MemoryRecord
    recorded_at: Instant | None = None
    retired_at: Instant | None = None
    diff: dict[str, list[Any]]


class MemoryHistory(BaseModel):
    """All versions of a memory, the newest first, and the changes that it was part of."""

    memory_id: str
    versions: list[MemoryVersion]
    changes: list[Change]


class EvidenceItem(Evidence):
    """A piece of evidence with its messages, as far as they still exist."""

    messages: list[MemoryMessage]


class MemoryEvidence(BaseModel):
    """What a memory rests on."""

    memory_id: str
    evidence: list[EvidenceItem]
