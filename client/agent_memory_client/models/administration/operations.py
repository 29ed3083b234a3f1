"""Background work."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel

from agent_memory_client.models._types import Instant


class OperationKind(StrEnum):
    """What the work is about: a deletion, session, extraction, memory, derived data, item, order or export.

    An export runs while its caller reads it; its operation is a receipt and not listed.
    """

    DELETION = "deletion"
    SESSION = "session"
    EXTRACTION = "extraction"
    MEMORY = "memory"
    FOLLOW = "follow"
    ITEM = "item"
    ORDER = "order"
    EXPORT = "export"


class OperationState(StrEnum):
    """State of the work. `dead`: it failed too often, and stays until replayed or dropped."""

    PENDING = "pending"
    RUNNING = "running"
    RETRYING = "retrying"
    DONE = "done"
    DEAD = "dead"


class OperationRecord(BaseModel):
    """One piece of background work."""

    id: str
    """The operation's id, as the header `X-Operation-Id` gives it."""
    kind: OperationKind
    """What the work is."""
    state: OperationState
    """Where the work stands; `dead` when it was given up after too many tries."""
    attempts: int = 0
    """How often it was tried without success."""
    reason: str | None = None
    """Why the last try failed; of an erasure or a purge that is done, which records it could not read."""
    due_at: Instant | None = None
    """When it is tried, or tried again."""
    namespace: str | None = None
    """The namespace that it works in; null for none, or for all."""
    user_id: str | None = None
    """The user whose data it works on; null for nobody's, or for everybody's."""
    session_id: str | None = None
    """The session that it works on."""
    memory_id: str | None = None
    """The memory that it works on."""
    stages: dict[str, int] = {}
    """Counts of what is done and what is to be done: `{"promoted": 12, "messages": 14}`."""
    messages_per_minute: float | None = None
    """How quickly the model answered about the last batch of messages; null for work without a model."""
    notices: list[str] = []
    """What was left out of the work, such as facts of a model's answer that could not be used."""


class OperationListResponse(BaseModel):
    """A page of operations."""

    operations: list[OperationRecord]
    """This page's operations."""
    next_offset: int | None = None
