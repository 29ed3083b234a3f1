"""Versions of memories, their evidence, and changes that can be undone."""

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
    """State of a change: applied or undone, or a proposal that waits or was rejected."""

    APPLIED = "applied"
    UNDONE = "undone"
    PROPOSED = "proposed"
    REJECTED = "rejected"


class ChangedMemory(BaseModel):
    """A memory before and after a change."""

    memory_id: str
    before: MemoryRecord | None = None
    """The memory as it was before the change; null when it did not exist."""
    after: MemoryRecord | None = None
    """The memory as the change left it; null when the change took it away, or is only proposed to."""
    diff: dict[str, list[Any]]
    """The fields that differ, each with its value before and after: `{"text": ["old", "new"]}`."""


class Change(BaseModel):
    """A recorded change of memories."""

    id: str
    """The change's id: it is undone, approved or rejected by it."""
    kind: ChangeKindEnum
    """What was done: an update, a supersession by a newer fact, a merge of repeats, a forgetting, or the undoing of one
    of these."""
    state: ChangeStateEnum
    """Whether it counts (`applied`), was taken back (`undone`), waits for approval (`proposed`), or was turned down
    (`rejected`)."""
    batch_id: str
    """The run that it belongs to; the changes of one run can be undone together by this id."""
    at: Instant
    """When the change was made or proposed."""
    actor: str
    """What made it, such as `client`, `extraction`, `compaction`, `forgetting`, `import` or `undo`."""
    reason: str | None = None
    """Why it was made, in words."""
    strategy: str | None = None
    """The extraction strategy that made it; null when no extraction did."""
    model: str | None = None
    """The language model that decided it; null when none did."""
    prompt_version: str | None = None
    """The version of the server's prompt that the model was asked with; null without a model."""
    memories: list[ChangedMemory]
    """The memories that it changed."""
    receipt_id: str | None = None
    """Of a forgetting that was just approved: the receipt, by which `undo_forget_memory` brings it back."""
    undo_until: Instant | None = None
    """Until when that is possible; null when it is not."""


class ChangeListResponse(BaseModel):
    """A page of changes, the newest first."""

    changes: list[Change]
    """This page's changes."""
    total: int
    next_offset: int | None = None


class MemoryVersion(BaseModel):
    """A version of a memory, with the time in which the server knew it."""

    version: int
    """The number of the version; a higher one is newer."""
    record: MemoryRecord
    """The memory as this version had it."""
    recorded_at: Instant | None = None
    """When the server began to know this version."""
    retired_at: Instant | None = None
    """When another version took its place; null for the current one."""
    diff: dict[str, list[Any]]
    """The fields in which it differs from the version before, each with its value before and after."""


class MemoryHistory(BaseModel):
    """All versions and changes of a memory."""

    memory_id: str
    versions: list[MemoryVersion]
    """All versions, the newest first."""
    changes: list[Change]
    """The changes that it was part of."""


class EvidenceItem(Evidence):
    """A piece of evidence with its messages, as far as they still exist."""

    messages: list[MemoryMessage]
    """Those of the named messages that still exist."""


class MemoryEvidence(BaseModel):
    """What a memory rests on."""

    memory_id: str
    evidence: list[EvidenceItem]
    """What it rests on; several pieces when it was said or stated more than once."""
