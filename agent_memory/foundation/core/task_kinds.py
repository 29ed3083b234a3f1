"""Name the background tasks and the kinds of due work.

Every write marks its due work in the outbox (`storage/outbox.py`). A worker's relay hands the marks to docket.
A task's arguments are ids, never objects, because workers of two versions run side by side during a deploy. A task for
marks takes (member, lease, attempt), or lists of these. Its docket key begins with the kind, so that an older worker
can return marks that it does not know.
"""

from __future__ import annotations

from enum import StrEnum

MAX_WAIT_SECONDS = 20.0


class TaskName(StrEnum):
    """The tasks of a worker, implemented in `agent_memory_worker.task_handlers`."""

    ERASE = "erase"
    PROCESS_SESSION = "process_session"
    EXTRACT_FACTS = "extract_facts"
    INDEX_MEMORIES = "index_memories"
    INDEX_ITEMS = "index_items"
    CARRY_OUT = "carry_out"
    FOLLOW_MEMORIES = "follow_memories"


class DueKind(StrEnum):
    """The kinds of marks in the outbox. The relay hands them to docket in this order."""

    DELETION = "deletion"
    """An ordered deletion of a session or a user's memories."""
    SESSION = "session"
    """A session with messages to promote or memories to store, or with more tokens than its window."""
    EXTRACTION = "extraction"
    """A session with messages for fact extraction; due when no new message arrived for a while (debounce)."""
    MEMORY = "memory"
    """A memory that needs its vector and the terms of its neighbors."""
    FOLLOW = "follow"
    """A changed or deleted memory; data derived from it is out of date."""
    ITEM = "item"
    """An item (a JSON value stored under a path and key) that needs its vector."""
    ORDER = "order"
    """An order: long work that a caller requested, such as a compaction or all partitions of a view."""

    @property
    def shared_by_tenants(self) -> bool:
        """True if one tenant may use only its share of the workers for this kind. Deletions never wait for a share."""
        return self is not DueKind.DELETION
