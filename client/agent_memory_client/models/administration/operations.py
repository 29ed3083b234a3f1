"""Background work."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel

from agent_memory_client.models._types import Instant


class OperationKind(StrEnum):
    """What the work is: a session's promotion and summary, facts from a session, a memory's or an item's vector, what is
    derived of a memory, a deletion, what was
    ordered.

    An export is done while its caller reads; it has an operation as its receipt, which is not listed.
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
    """Where the work stands. `dead`: given up after too many tries, kept until replayed or dropped."""

    PENDING = "pending"
    RUNNING = "running"
    RETRYING = "retrying"
    DONE = "done"
    DEAD = "dead"


class OperationRecord(BaseModel):
    """One piece of background work: what it is about, how far it is, and why its last try failed.

    `stages` counts what is done and what is to do, e.g. {"promoted": 12, "messages": 14}. `due_at` is when it is tried (again).
    """

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
    """A page of operations; `next_offset` is None on the last page."""

    operations: list[OperationRecord]
    """This page's operations."""
    next_offset: int | None = None
