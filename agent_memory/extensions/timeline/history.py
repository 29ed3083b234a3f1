"""Compute a timeline as of a past time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, tzinfo
from typing import Any

from redis.asyncio import Redis
from redisvl.query.filter import Num

from agent_memory.extensions.profile.history import ProfileHistory
from agent_memory.extensions.timeline.events import TimelineEntry, events_of
from agent_memory.extensions.timeline.store import EventRange, TimelineOwner
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.pagination import walk
from agent_memory.foundation.storage.search.results import PAST
from agent_memory.foundation.storage.search.syntax import all_of, has_number, negated
from agent_memory_client.models import MemoryRecord


class TimelineHistory:
    """Reads a timeline's memories as of a past time."""

    def __init__(self, client: Redis, profiles: ProfileHistory, store: MemoryStore) -> None:
        self._client = client
        self._profiles = profiles
        self._store = store

    async def entries_at(
        self, scope: Scope, owner: TimelineOwner, zone: tzinfo, as_of: datetime | None, known_at: datetime | None, *, statements: bool
    ) -> list[TimelineEntry]:
        """Return events from memories that were stated by `as_of` and valid at that time.

        `known_at` limits them to what the server knew then. At least one of the two times is
        required.
        """
        at = as_of or known_at
        assert at is not None
        clause = all_of(filters.where(scope, Selection.of(owner.namespace, owner.user_id)), Num("c") <= at.timestamp())
        if known_at is not None:
            clause = all_of(clause, filters.in_time(None, known_at, True, known_at)[0])
        memories = await self._profiles.followed_at(scope, owner, at, clause, clause)
        valid_memories = [memory for memory in memories if _holds(memory.record, at, known_at)]
        return [entry for memory in valid_memories for entry in events_of(memory, zone, statements=statements)]

    async def walk_over(self, scope: Scope, owner: TimelineOwner) -> AsyncIterator[list[str]]:
        """Yield the mids of an owner's ended memories, page by page."""
        clause = all_of(filters.where(scope, Selection.of(owner.namespace, owner.user_id)), negated(has_number("rt")))
        async for names in walk(self._client, self._profiles.indexes[1], clause, "c"):
            mids = [name.removeprefix(PAST) for name in names if "." not in name]
            memories = await self._store.find_by_mids(scope, mids)
            yield [memory.mid for memory in memories if memory is not None and memory.record.namespace == owner.namespace]


def page_of(entries: Sequence[TimelineEntry], event_range: EventRange) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of matching events, and a page of them in order."""
    matches = [
        entry
        for entry in sorted(entries, key=lambda entry: (entry.first, entry.name))
        if (event_range.high is None or entry.first <= event_range.high)
        and (event_range.low is None or entry.last is None or entry.last >= event_range.low)
        and set(event_range.facets) <= set(entry.facets)
    ]
    return len(matches), [entry.payload for entry in matches[event_range.offset : event_range.offset + event_range.limit]]


def _holds(record: MemoryRecord, at: datetime, known_at: datetime | None) -> bool:
    """True if this version was known at `known_at` (None means now) and valid at `at`."""
    if record.retired_at is not None and (known_at is None or record.retired_at <= known_at):
        return False
    superseded = record.superseded_by is not None and record.valid_to is not None and record.valid_to <= at
    return not superseded and (record.expires_at is None or record.expires_at > at)
