"""Compute a profile as of a past time, using the rule in `lua/static_rule.lua`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo

from redis.asyncio import Redis

from agent_memory.extensions.profile.entries import FollowedMemory, ProfileEntry, day_since_epoch, entry_of
from agent_memory.extensions.profile.store import ProfileOwner, ProfilePages
from agent_memory.features.memories.records import StoredEvidence, StoredMemory
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.foundation.core.permissions import within
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import Pipe, read
from agent_memory.foundation.storage.keyspace import Keys, tag
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.indexes import VectorSpec, history_index_name, memory_index_name
from agent_memory.foundation.storage.search.queries import name_query, queue_search
from agent_memory.foundation.storage.search.results import PAST, parse_hits
from agent_memory.foundation.storage.search.syntax import all_of

MOST_READ = 2_000
"""Maximum number of memories to read from each index, newest first."""
_LASTING = 1e12
TIMES = 3
"""A statement is recurring if made on this many days within `WITHIN_DAYS` days."""
WITHIN_DAYS = 14
"""The period, in days, in which the `TIMES` days must fall."""
SILENT_DAYS = 180
"""A recurring statement not repeated for this many days is no longer stable."""
MOST_STATEMENTS = 400
"""Maximum number of a group's latest statements to consider."""
SECONDS_OF_DAY = 86_400


def stable_until(days: Sequence[int]) -> int | None:
    """Return the Unix time at which a statement stops being stable, or None.

    `days` are in days since 1970.
    """
    distinct = sorted(set(days))
    start = 0
    for index in range(1, len(distinct)):
        if distinct[index] - distinct[index - 1] >= SILENT_DAYS:
            start = index
    lately = distinct[start:]
    pairs = zip(lately, lately[TIMES - 1 :], strict=False)
    recurs = any(last - first < WITHIN_DAYS for first, last in pairs)
    return (lately[-1] + SILENT_DAYS) * SECONDS_OF_DAY if recurs else None


def classify(entries: Sequence[ProfileEntry], at: datetime, zone: tzinfo = UTC) -> ProfilePages:
    """Return the profile that `profile_follow.lua` would store for these entries at the time `at`.

    Lapsed static entries remain static; `shown_lists` shows them as dynamic.
    """
    today = day_since_epoch(at, zone)
    groups: dict[str, list[ProfileEntry]] = {}
    for entry in entries:
        for group in entry.groups:
            groups.setdefault(group, []).append(entry)
    until: dict[str, float] = {}
    for group, members in groups.items():
        tops = [entry for entry in members if entry.rank is not None or group.startswith("=")]
        sayings = sorted(((day, entry.mid) for entry in members for day in entry.days if day <= today), reverse=True)[:MOST_STATEMENTS]
        seconds = stable_until([day for day, _ in sayings])
        if tops and seconds is not None:
            top = min(tops, key=lambda entry: (entry.rank or "", entry.mid)).mid
            until[top] = max(until.get(top, 0.0), float(seconds))
    static = [
        (_LASTING + entry.last if entry.lasting else until[entry.mid], entry) for entry in entries if entry.lasting or entry.mid in until
    ]
    static_ids = {entry.mid for _, entry in static}
    dynamic = [(float(entry.last), entry) for entry in entries if entry.mid not in static_ids]
    values: dict[str, list[ProfileEntry]] = {}
    for entry in sorted(entries, key=lambda entry: (-entry.last, entry.mid)):
        # The latest value that has begun, after later ones that begin in the future.
        later = values.setdefault(entry.slot, []) if entry.slot is not None else None
        if later is not None and (not later or later[-1].payload.get("begins", 0.0) > at.timestamp()):
            later.append(entry)
    slots = sorted(values.items(), key=lambda item: (item[1][0].last, tag(item[0])), reverse=True)
    return ProfilePages(
        [(score, entry.payload) for score, entry in sorted(static, key=lambda item: (item[0], item[1].mid), reverse=True)],
        [(score, entry.payload) for score, entry in sorted(dynamic, key=lambda item: (item[0], item[1].mid), reverse=True)],
        [(slot, entry.payload) for slot, each in slots for entry in each],
    )


class ProfileHistory:
    def __init__(self, client: Redis, keys: Keys, spec: VectorSpec, store: MemoryStore) -> None:
        self._client = client
        self._keys = keys
        self.indexes = (memory_index_name(keys), history_index_name(keys, spec))
        self._store = store

    async def entries_at(self, scope: Scope, owner: ProfileOwner, at: datetime, zone: tzinfo, *, statements: bool) -> list[ProfileEntry]:
        """Return entries for the memories that were true at `at`, ignoring later evidence."""
        clause = filters.where(scope, Selection.of(owner.namespace, owner.user_id))
        current, past = filters.in_time(at, None, False, datetime.now(UTC))

        memories = await self.followed_at(scope, owner, at, all_of(clause, current or ""), all_of(clause, past or ""))
        entries = [entry_of(_ending_later(memory, at), zone, statements=statements) for memory in memories]
        return [entry for entry in entries if entry is not None]

    async def followed_at(
        self, scope: Scope, owner: ProfileOwner, at: datetime, current_clause: str, former_clause: str
    ) -> list[FollowedMemory]:
        """Return the newest matching memories and former versions, ignoring later evidence."""

        def find(pipe: Pipe) -> None:
            for index, clause in zip(self.indexes, (current_clause, former_clause), strict=True):
                queue_search(pipe, index, name_query(clause, 0, MOST_READ, sort_by=("c", "DESC")))

        current, former = [parse_hits(reply) for reply in await read(self._client, find)]
        names = [*current.names, *(name if name.startswith(PAST) else PAST + name for name in former.names)]
        loaded = [memory for memory in await self._store.load_by_names(scope, names) if memory is not None]
        memories = [memory for memory in loaded if memory.record.namespace == owner.namespace and within(scope, memory.record)]
        rows = await read(self._client, lambda pipe: [pipe.hgetall(self._keys.evidence(memory.mid)) for memory in memories])
        return [_followed(owner, memory, list(row.values()), at) for memory, row in zip(memories, rows, strict=True)]


def _followed(owner: ProfileOwner, memory: StoredMemory, evidence: Sequence[bytes], at: datetime) -> FollowedMemory:
    pieces = [StoredEvidence.model_validate_json(raw) for raw in evidence]
    earlier = [piece for piece in pieces if piece.at is not None and piece.at <= at]
    last = max((piece.at.timestamp() for piece in earlier if piece.at is not None), default=None)
    times = 1 + sum(piece.times or 1 for piece in earlier)
    return FollowedMemory(memory.mid, owner.tenant, memory.record, last, times, evidence=earlier)


def _ending_later(memory: FollowedMemory, at: datetime) -> FollowedMemory:
    """Return the memory, dropping its end time if that is after `at`."""
    record = memory.record
    ends_later = record.valid_to is not None and record.valid_to > at
    return replace(memory, record=record.model_copy(update={"valid_to": None})) if ends_later else memory
