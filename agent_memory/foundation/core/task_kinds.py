"""The task contract: names of background tasks and kinds of due work.

Every write marks its due work in the outbox (`storage/outbox.py`); a worker's relay hands the marks to docket.
Arguments are ids, never objects, since deploys mix versions. A task of marks takes (member, lease, attempt), or lists
of them; its docket key begins with the kind, so that an older worker can put unknown marks back.
"""

from __future__ import annotations

from enum import StrEnum

MAX_WAIT_SECONDS = 20.0


class TaskName(StrEnum):
    """Tasks of a worker, implemented in `agent_memory_worker.task_handlers`."""

    ERASE = "erase"
    PROCESS_SESSION = "process_session"
    EXTRACT_FACTS = "extract_facts"
    INDEX_MEMORIES = "index_memories"
    INDEX_ITEMS = "index_items"
    CARRY_OUT = "carry_out"
    FOLLOW_MEMORIES = "follow_memories"


class DueKind(StrEnum):
    """Kinds of marks in the outbox, handed over in this order."""

    DELETION = "deletion"
    """An ordered deletion of a session or a user's memories."""
    SESSION = "session"
    """A session with messages to promote, memories to store, or more tokens than its window."""
    EXTRACTION = "extraction"
    """A session with messages for fact extraction, due once it has been quiet."""
    MEMORY = "memory"
    """A memory without its vector and context terms."""
    FOLLOW = "follow"
    """A changed or deleted memory whose derived data is out of date."""
    ITEM = "item"
    """An item (a JSON value by path and key) without its vector."""
    ORDER = "order"
    """An order for long work (a compaction, all partitions of a view)."""

    @property
    def shared_by_tenants(self) -> bool:
        """True if a tenant gets only its share of the workers for this kind; deletions never wait."""
        return self is not DueKind.DELETION
