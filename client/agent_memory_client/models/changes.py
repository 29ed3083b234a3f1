"""Versions and evidence of memories, and changes that can be undone."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel

from agent_memory_client.models._types import Absent, Instant
from agent_memory_client.models.memories import Evidence, MemoryRecord
from agent_memory_client.models.messages import MemoryMessage


class ChangeKindEnum(StrEnum):
    """What a change did to the memories."""

    UPDATE = "update"
    SUPERSEDE = "supersede"
    MERGE = "merge"
    FORGET = "forget"
    UNDO = "undo"


class ChangeStateEnum(StrEnum):
    """The state of a change: applied, undone, proposed (awaiting approval) or rejected."""

    APPLIED = "applied"
    UNDONE = "undone"
    PROPOSED = "proposed"
    REJECTED = "rejected"


class ChangedMemory(BaseModel):
    """A memory before and after a change."""

    memory_id: str
    before: MemoryRecord | None = None
    """The memory before the change. Null if it did not exist."""
    after: MemoryRecord | None = None
    """The memory after the change. Null if the change deleted the memory, or proposes to delete or end it."""
    diff: dict[str, list[Any]]
    """The fields that differ, each with its old and new values: `{"text": ["old", "new"]}`."""


class Change(BaseModel):
    """A change to one or more memories."""

    id: str
    """The change's id. Use it to undo, approve or reject the change."""
    kind: ChangeKindEnum
    """The kind of change: an update, a supersession by a newer fact, a merge of duplicates, `forget`, or
    an undo of one of these. `forget` is a deletion on request or by a retention policy."""
    state: ChangeStateEnum
    """The change's state: `applied`, `undone`, `proposed` (awaiting approval) or `rejected`."""
    batch_id: str
    """The id of the run that made the change. Use it to undo all of the run's changes together."""
    at: Instant
    """The time when the change was made or proposed."""
    actor: str
    """Who made the change, such as `client`, `extraction`, `compaction`, `forgetting`, `conversation` (a user's request)
    or `import`. For an undo, an edit of validity or a request to forget, this is the caller."""
    decided_by: str | None = None
    """The caller who approved, rejected or undid the change. Null if nobody has."""
    reason: str | None = None
    """Why the change was made."""
    strategy: str | None = None
    """The extraction strategy that made the change. Null for other changes."""
    model: str | None = None
    """The language model that decided on the change. Null if no model did."""
    prompt_version: str | None = None
    """The version of the prompt given to the language model. Null if no model was used."""
    memories: list[ChangedMemory]
    """The changed memories."""
    receipt_id: str | None = None
    """The receipt of a deletion on request. Pass it to `undo_forget_memory` to undo the deletion."""
    user_id: str | None = Absent
    """The user whose memories a request deleted."""
    namespace: str | None = Absent
    """The namespace of these memories."""
    forgotten: dict[str, int] | None = Absent
    """The number of `facts`, `messages`, `session_messages` and `summaries` that a request deleted."""
    undo_until: Instant | None = None
    """The deadline for undoing the deletion. Null if the deletion cannot be undone."""


class ChangeListResponse(BaseModel):
    """A page of changes, newest first."""

    changes: list[Change]
    """The changes on this page."""
    total: int
    next_offset: int | None = None


class MemoryVersion(BaseModel):
    """A version of a memory, and the period in which it was the current version."""

    version: int
    """The version number. Higher numbers are newer."""
    record: MemoryRecord
    """The memory in this version."""
    recorded_at: Instant | None = None
    """The time when the server stored this version."""
    retired_at: Instant | None = None
    """The time when another version replaced this one. Null for the current version."""
    diff: dict[str, list[Any]]
    """The fields that differ from the previous version, each with its old and new values."""


class MemoryHistory(BaseModel):
    """The versions of a memory and the changes to it."""

    memory_id: str
    versions: list[MemoryVersion]
    """All versions, newest first."""
    changes: list[Change]
    """The changes that affected the memory."""


class EvidenceItem(Evidence):
    """A piece of evidence with its messages, if they are still stored."""

    messages: list[MemoryMessage]
    """The messages in the evidence that are still stored."""


class MemoryEvidence(BaseModel):
    """The evidence for a memory."""

    memory_id: str
    evidence: list[EvidenceItem]
    """The pieces of evidence. There are several if the fact was stated more than once."""
