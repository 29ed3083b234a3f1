"""Background work."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel

from agent_memory_client.models._types import Instant


class OperationKind(StrEnum):
    """The subject of the work: a deletion, session, extraction, memory, derived data, item, order or export.

    An export runs while its caller reads it. Its operation is a receipt and is not listed.
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
    """The state of the work. `dead` work failed too often; it stays until someone replays or drops it."""

    PENDING = "pending"
    RUNNING = "running"
    RETRYING = "retrying"
    DONE = "done"
    DEAD = "dead"


class OperationRecord(BaseModel):
    """A piece of background work."""

    id: str
    """The operation's id, as in the header `X-Operation-Id`."""
    kind: OperationKind
    """The subject of the work."""
    state: OperationState
    """The state of the work. `dead` means that the worker gave up after too many attempts."""
    attempts: int = 0
    """The number of failed attempts."""
    reason: str | None = None
    """The error of the last attempt. For a finished erasure or purge: the records that it could not read."""
    due_at: Instant | None = None
    """The time of the next attempt."""
    namespace: str | None = None
    """The namespace of the work; null for no namespace, or for all."""
    user_id: str | None = None
    """The user whose data the work changes; null for no user, or for all."""
    session_id: str | None = None
    """The session of the work."""
    memory_id: str | None = None
    """The memory of the work."""
    stages: dict[str, int] = {}
    """Progress, as counts of finished and total steps: `{"promoted": 12, "messages": 14}`."""
    messages_per_minute: float | None = None
    """The speed of the model for the last batch of messages, in messages per minute; null for work without a model."""
    notices: list[str] = []
    """Parts of the work that were skipped, such as facts of a model's answer that could not be used."""


class OperationListResponse(BaseModel):
    """A page of operations."""

    operations: list[OperationRecord]
    """The operations of this page."""
    next_offset: int | None = None
