"""Background work, as the server tells of it."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel

from agent_memory_client.models._types import Instant


class OperationKind(StrEnum):
    """What the work is: a session's promotion and summary, facts from a session, a memory's vector, a deletion, what was ordered.

    An export is done while its caller reads; it has an operation as its receipt, which is not listed.
    """

    DELETION = "deletion"
    SESSION = "session"
    EXTRACTION = "extraction"
    MEMORY = "memory"
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
    kind: OperationKind
    state: OperationState
    attempts: int = 0
    reason: str | None = None
    due_at: Instant | None = None
    namespace: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    memory_id: str | None = None
    stages: dict[str, int] = {}


class OperationListResponse(BaseModel):
    """A page of operations; `next_offset` is None on the last page."""

    operations: list[OperationRecord]
    next_offset: int | None = None
