"""Versions of memories, their evidence, and changes that can be undone."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel

from agent_memory_client.models._types import Instant
from agent_memory_client.models.memories import Evidence, MemoryRecord
from agent_memory_client.models.messages import MemoryMessage


class ChangeKindEnum(StrEnum):
    """The kind of a change."""

    UPDATE = "update"
    SUPERSEDE = "supersede"
    MERGE = "merge"
    FORGET = "forget"
    UNDO = "undo"


class ChangeStateEnum(StrEnum):
    """The state of a change: applied, undone, proposed (it waits for approval) or rejected."""

    APPLIED = "applied"
    UNDONE = "undone"
    PROPOSED = "proposed"
    REJECTED = "rejected"


class ChangedMemory(BaseModel):
    """A memory before and after a change."""

    memory_id: str
    before: MemoryRecord | None = None
    """The memory before the change; null if it did not exist."""
    after: MemoryRecord | None = None
    """The memory after the change; null if the change deleted it, or proposes to."""
    diff: dict[str, list[Any]]
    """The fields that differ, each with its values before and after: `{"text": ["old", "new"]}`."""


class Change(BaseModel):
    """A recorded change of memories."""

    id: str
    """The change's id. Use it to undo, approve or reject the change."""
    kind: ChangeKindEnum
    """The kind of change: an update, a supersession by a newer fact, a merge of duplicates, a deletion on request
    (`forget`), or an undo of one of these."""
    state: ChangeStateEnum
    """The state of the change: `applied`, `undone`, `proposed` (it waits for approval) or `rejected`."""
    batch_id: str
    """The id of the run that made the change. Use it to undo all changes of the run together."""
    at: Instant
    """The time when the change was made or proposed."""
    actor: str
    """The author of the change, such as `client`, `extraction`, `compaction`, `forgetting`, `import` or `undo`."""
    reason: str | None = None
    """The reason for the change, in words."""
    strategy: str | None = None
    """The extraction strategy that made the change; null for other changes."""
    model: str | None = None
    """The language model that decided the change; null without a model."""
    prompt_version: str | None = None
    """The version of the prompt for the language model; null without a model."""
    memories: list[ChangedMemory]
    """The changed memories."""
    receipt_id: str | None = None
    """The receipt of a deletion that was just approved. Pass it to `undo_forget_memory` to undo the deletion."""
    undo_until: Instant | None = None
    """The time until which the deletion can be undone; null if it cannot."""


class ChangeListResponse(BaseModel):
    """A page of changes, newest first."""

    changes: list[Change]
    """The changes of this page."""
    total: int
    next_offset: int | None = None


class MemoryVersion(BaseModel):
    """A version of a memory, with the time in which it was the server's knowledge."""

    version: int
    """The version's number; higher numbers are newer."""
    record: MemoryRecord
    """The memory in this version."""
    recorded_at: Instant | None = None
    """The time when the server stored this version."""
    retired_at: Instant | None = None
    """The time when another version replaced this one; null for the current version."""
    diff: dict[str, list[Any]]
    """The fields that differ from the version before, each with its values before and after."""


class MemoryHistory(BaseModel):
    """All versions and changes of a memory."""

    memory_id: str
    versions: list[MemoryVersion]
    """All versions, newest first."""
    changes: list[Change]
    """The changes that include the memory."""


class EvidenceItem(Evidence):
    """A piece of evidence, with its messages that still exist."""

    messages: list[MemoryMessage]
    """The messages of the evidence that still exist."""


class MemoryEvidence(BaseModel):
    """The evidence of a memory."""

    memory_id: str
    evidence: list[EvidenceItem]
    """The pieces of evidence; several if the fact was stated more than once."""
