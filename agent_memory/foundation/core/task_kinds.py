"""THE TASK CONTRACT: the names of the background tasks and the kinds of work that can be due. Arguments are ids, never objects.

What is due stands in the outbox (`storage/outbox.py`), which every write marks in its own script; nothing depends on an enqueue that
follows a write. A worker's relay hands due marks to docket under one of these names, with plain strings and numbers only: deploys mix
versions, so a task reloads what it works on. What docket loses is handed over again when its lease ends.

Every task of a mark takes (member, lease, attempt), or a list of each, and its key in docket begins with the kind: so a worker of an
older version can put the marks of a task back that it does not know. Periodic jobs are docket's own and stand in no outbox.
"""

from __future__ import annotations

from enum import StrEnum

MAX_WAIT_SECONDS = 20.0
"""How long a request may wait for background work."""


class TaskName(StrEnum):
    """What a worker can be asked to do. Every member has an implementation in `agent_memory_worker.task_handlers`, checked at its start."""

    ERASE = "erase"
    PROCESS_SESSION = "process_session"
    EXTRACT_FACTS = "extract_facts"
    INDEX_MEMORIES = "index_memories"
    INDEX_ITEMS = "index_items"
    CARRY_OUT = "carry_out"
    FOLLOW_MEMORIES = "follow_memories"


class DueKind(StrEnum):
    """The kinds of marks in the outbox, each with a sorted set of its own; handed over in this order."""

    DELETION = "deletion"
    """An order to delete a session's or a user's memories waits to be carried out."""
    SESSION = "session"
    """A session has messages to promote, memories to store, or more tokens than its window allows."""
    EXTRACTION = "extraction"
    """A session has messages that a model has not been asked about; due when it has been quiet for a while."""
    MEMORY = "memory"
    """A memory waits for its vector and its context terms."""
    FOLLOW = "follow"
    """A memory changed, or went, and what is derived of it waits to be brought up to date."""
    ITEM = "item"
    """An item (a JSON value by path and key) waits for its vector."""
    ORDER = "order"
    """Somebody asked for work that takes its time (a compaction, all partitions of a view); what it is stands in its order."""

    @property
    def shared_by_tenants(self) -> bool:
        """Whether one tenant has but its share of the workers with this kind at a time: what is to be erased waits for nobody's share."""
        return self is not DueKind.DELETION
