"""Background jobs."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel

from agent_memory_client.models._types import Absent, Instant


class OperationKind(StrEnum):
    """The kind of job.

    `follow` jobs update derived data. `order` jobs perform requested tasks, such as a rebuild. An
    `export` runs while the caller reads it, and does not appear in lists of jobs.
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
    """The job's state. A `dead` job failed too often, and remains until it is retried or deleted."""

    PENDING = "pending"
    RUNNING = "running"
    RETRYING = "retrying"
    DONE = "done"
    DEAD = "dead"


class OperationRecord(BaseModel):
    """A background job."""

    id: str
    """The operation's id, as in the header `X-Operation-Id`."""
    kind: OperationKind
    """What the job works on."""
    state: OperationState
    """The job's state. `dead` means that the worker gave up after too many attempts."""
    attempts: int = 0
    """The number of failed attempts."""
    reason: str | None = None
    """The error from the last attempt. For a finished erasure or purge: the records that the job could not read."""
    due_at: Instant | None = None
    """The time of the next attempt."""
    namespace: str | None = None
    """The job's namespace. Null means no namespace or all namespaces."""
    user_id: str | None = None
    """The user whose data the job changes. Null means no user or all users."""
    session_id: str | None = None
    """The job's session."""
    memory_id: str | None = None
    """The job's memory."""
    stages: dict[str, int] = {}
    """Progress: the number of finished steps and the total, such as `{"promoted": 12, "messages": 14}`."""
    messages_per_minute: float | None = None
    """The model's speed for the last batch, in messages per minute. Null for jobs that use no model."""
    ordered_by: str | None = Absent
    """Who requested an erasure: an API key or the subject of a token, as in `written_by`; `self` for the erased user."""
    ordered_at: Instant | None = Absent
    """The time when an erasure was requested."""
    finished_at: Instant | None = Absent
    """The time when an erasure was finished."""
    notices: list[str] = []
    """Parts of the job that were skipped, such as unusable facts in a model's response."""


class OperationListResponse(BaseModel):
    """A page of operations."""

    operations: list[OperationRecord]
    """The operations on this page."""
    next_offset: int | None = None
