"""Delete memories according to a policy.

Never delete pinned or excluded memories, or memories that have changed since their evaluation.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from ulid import ULID

from agent_memory.features.memories.commit import ChangeOrigin, MemoryCommits
from agent_memory.features.memories.search.recency import RecencyWeights
from agent_memory.features.memories.search.recency import recency as decayed
from agent_memory.features.memories.upkeep.scan import MemoryScan, Selection, StoredMemory
from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.scope import Scope
from agent_memory_client.models import CreatedAt, ForgetResponse, LastAccessed, MemoryRecord

MAX_DELETIONS = 10_000
_HARD_AGE_MULTIPLIER = 12.0
_BATCH = 200
_ORIGIN = ChangeOrigin("forgetting", "past the policy's age or budget")
_DAY = 86_400.0
_LONG_AGO = datetime(1, 1, 2, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Policy:
    """Selects memories to delete, optionally only certain `types`.

    `budget` is the number of memories to keep.
    """

    max_age_days: float | None = None
    max_inactive_days: float | None = None
    budget: int | None = None
    types: frozenset[str] | None = None
    hard_age_multiplier: float = _HARD_AGE_MULTIPLIER

    @property
    def empty(self) -> bool:
        return self.max_age_days is None and self.max_inactive_days is None and self.budget is None


def parse_policy(raw: Mapping[str, Any]) -> Policy:
    """Parse the policy in a request, ignoring unknown keys and non-numeric values.

    Raises BadInput for a negative number or an invalid allow-list.
    """
    types = raw.get("memory_type_allowlist")
    if types is not None and not (isinstance(types, list) and all(isinstance(name, str) for name in cast("list[Any]", types))):
        raise BadInput("must be a list of memory types, or null", field="policy.memory_type_allowlist")
    budget = raw.get("budget")
    multiplier = _number(raw, "hard_age_multiplier")
    return Policy(
        max_age_days=_number(raw, "max_age_days"),
        max_inactive_days=_number(raw, "max_inactive_days"),
        budget=None if _number(raw, "budget") is None or not isinstance(budget, int) else budget,
        types=None if types is None else frozenset(cast("list[str]", types)),
        hard_age_multiplier=_HARD_AGE_MULTIPLIER if multiplier is None else multiplier,
    )


def _number(raw: Mapping[str, Any], name: str) -> float | None:
    value = raw.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if value < 0:
        raise BadInput("must not be negative", field=f"policy.{name}")
    return float(value)


def outdated(policy: Policy, record: MemoryRecord, now: datetime) -> bool:
    """True if the memory exceeds the policy's limits on age and time since the last read.

    If both limits are set, it must exceed both, or `hard_age_multiplier` times the maximum age.
    """
    age = (now - record.created_at).total_seconds() / _DAY
    idle = (now - record.last_accessed).total_seconds() / _DAY
    if policy.max_age_days is None:
        return policy.max_inactive_days is not None and idle > policy.max_inactive_days
    if policy.max_inactive_days is None:
        return age > policy.max_age_days
    both = age > policy.max_age_days and idle > policy.max_inactive_days
    return both or age > policy.max_age_days * policy.hard_age_multiplier


def recency(record: MemoryRecord, now: datetime) -> float:
    """Return the archived server's recency score: 0.6 * 2^(-days since read / 7) + 0.4 * 2^(-days since created / 30).

    Source: Park et al., "Generative Agents", UIST 2023.
    """
    return decayed((now - record.last_accessed).total_seconds(), (now - record.created_at).total_seconds(), RecencyWeights())


@dataclass
class Choice:
    """Chooses up to `limit` memories to delete from those passed to `look`."""

    policy: Policy
    now: datetime
    limit: int
    excluded_ids: Collection[str] = ()
    _old: list[StoredMemory] = field(default_factory=list[StoredMemory])
    _stale: list[tuple[float, int, StoredMemory]] = field(default_factory=list[tuple[float, int, StoredMemory]])
    _staying: int = 0

    def look(self, memory: StoredMemory) -> None:
        record, policy = memory.record, self.policy
        if record.pinned or record.id in self.excluded_ids or (policy.types is not None and record.memory_type.value not in policy.types):
            return
        if outdated(policy, record, self.now):
            if len(self._old) < self.limit:
                self._old.append(memory)
            return
        self._staying += 1
        if policy.budget is not None and self.limit:
            # A heap of the stalest memories seen so far, with the freshest of them on top.
            item = (-recency(record, self.now), -self._staying, memory)
            if len(self._stale) < self.limit:
                heapq.heappush(self._stale, item)
            else:
                heapq.heappushpop(self._stale, item)

    def chosen(self) -> list[StoredMemory]:
        """Return the outdated memories, then the stalest ones beyond the budget."""
        beyond = 0 if self.policy.budget is None else max(self._staying - self.policy.budget, 0)
        room = min(self.limit - len(self._old), beyond)
        return [*self._old, *(memory for *_, memory in sorted(self._stale, key=lambda item: (-item[0], -item[1]))[:room])]


def narrow_selection(selection: Selection, policy: Policy, now: datetime) -> Selection:
    """Narrow a selection by the policy's age limits, but still include all outdated memories."""
    if policy.budget is not None:
        return selection
    if policy.max_age_days is not None:
        # With both limits, an outdated memory exceeds at least the smaller of the age and its multiple.
        factor = min(1.0, policy.hard_age_multiplier) if policy.max_inactive_days is not None else 1.0
        return selection.model_copy(update={"created_at": CreatedAt(lte=_days_before(now, policy.max_age_days * factor))})
    if policy.max_inactive_days is not None:
        return selection.model_copy(update={"last_accessed": LastAccessed(lte=_days_before(now, policy.max_inactive_days))})
    return selection


def _days_before(now: datetime, days: float) -> datetime:
    try:
        return max(now - timedelta(days=days), _LONG_AGO)
    except OverflowError:
        return _LONG_AGO


class RetentionService:
    def __init__(self, survey: MemoryScan, commits: MemoryCommits) -> None:
        self._survey = survey
        self._commits = commits

    async def forget_by_policy(
        self, scope: Scope, policy: Policy, selection: Selection, *, excluded_ids: Collection[str] = (), limit: int, dry_run: bool
    ) -> ForgetResponse:
        """Delete up to `limit` matching memories (at most 10,000), oldest first.

        With `dry_run`, only report them.
        """
        now = datetime.now(UTC)
        choice = Choice(policy, now, min(limit, MAX_DELETIONS), excluded_ids)
        scanned = await self._survey.count_memories(scope, selection)
        if not policy.empty and choice.limit:
            async for page in self._survey.walk_memories(scope, narrow_selection(selection, policy, now)):
                for memory in page:
                    choice.look(memory)
        chosen = choice.chosen()
        if not dry_run:
            batch, parts = str(ULID()), [chosen[start : start + _BATCH] for start in range(0, len(chosen), _BATCH)]
            chosen = [memory for part in parts for memory in await self._commits.forget_memories(scope, part, _ORIGIN, batch=batch)]
        ids = [memory.record.id for memory in chosen]
        return ForgetResponse(scanned=scanned, deleted=len(ids), deleted_ids=ids, dry_run=dry_run)
