"""Define the names of background tasks and the kinds of due work.

Writes mark work as due in the outbox. A worker's relay passes the marks to docket.

Task arguments must be ids, because old and new workers run side by side during a deployment. A task
for marks takes a member, a lease, and an attempt, or lists of these. Its docket key begins with the
mark's kind, so that older workers can return unknown marks.
"""

from __future__ import annotations

from enum import StrEnum

MAX_WAIT_SECONDS = 20.0


class TaskName(StrEnum):
    """Names of the worker's tasks, which `agent_memory_worker.task_handlers` implements."""

    ERASE = "erase"
    PROCESS_SESSION = "process_session"
    EXTRACT_FACTS = "extract_facts"
    INDEX_MEMORIES = "index_memories"
    INDEX_ITEMS = "index_items"
    CARRY_OUT = "carry_out"
    FOLLOW_MEMORIES = "follow_memories"


class DueKind(StrEnum):
    """Kinds of due work, in the order in which the relay passes marks on."""

    DELETION = "deletion"
    """A requested deletion of a session, user or agent."""
    SESSION = "session"
    """A session that needs promotion, has memories to store, or exceeds its context window."""
    EXTRACTION = "extraction"
    """A session with messages for fact extraction. Due after a pause (debounce)."""
    MEMORY = "memory"
    """A memory that needs its vector and the terms of its neighbors."""
    FOLLOW = "follow"
    """A memory whose derived data is out of date."""
    ITEM = "item"
    """An item that needs its vector."""
    ORDER = "order"
    """An order, such as a compaction."""
