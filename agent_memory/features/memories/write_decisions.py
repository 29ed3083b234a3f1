"""Decide without a model whether a memory is new, or repeats or supersedes another."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from agent_memory.features.memories.commit import (
    CLIENT_STATEMENT,
    Add,
    AddEvidence,
    Decision,
    MemoryCommits,
    Supersede,
    Update,
    end_and_begin,
    expected_version,
)
from agent_memory.features.memories.records import IN_BATCH, StoredMemory, evidence_of, owner_name, standing_of
from agent_memory.features.memories.similar_memories import ExistingMemories, SimilarMemoryStore
from agent_memory.features.memories.store import WRITE_BATCH, MemoryStore
from agent_memory.foundation.core.errors import Conflict, IdTaken
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.text.dates.relative import same_meaning
from agent_memory.foundation.text.normalization import begins_at, ends_at, is_plain, is_turn
from agent_memory_client.models import MemoryRecord, MemoryTypeEnum

_TRIES = 16
_MOST_FORMER = 50


class _Batch:
    """The memories as they will be after the batch's earlier decisions."""

    def __init__(self, store: MemoryStore, scope: Scope) -> None:
        self._store = store
        self._scope = scope
        self._memories: dict[str, StoredMemory] = {}
        self._mids: dict[str, str] = {}

    def put(self, record: MemoryRecord, *, takes_words: bool = True) -> None:
        """Track a record that the batch stores.

        If `takes_words` is False, another memory has its words.
        """
        mid = self._store.mid(self._scope, record.id)
        self._mids = {name: other for name, other in self._mids.items() if other != mid}
        self._memories[mid] = StoredMemory(mid, IN_BATCH, record)
        ends = ends_at(record)
        if record.quarantine is not None or is_turn(record) or (ends is not None and ends <= datetime.now(UTC)):
            return
        standing = standing_of(self._scope.tenant, record)
        if takes_words:
            self._mids[f"{standing.scope} {standing.words}"] = mid
        if standing.slot:
            self._mids[f"{standing.scope} {standing.slot}"] = mid

    def apply(self, decision: Decision, stored: ExistingMemories) -> None:
        match decision:
            case Add(record):
                self.put(record, takes_words=self._has_free_words(record, stored))
            case Update(_, record):
                self.put(record)
            case Supersede(old, record):
                ended, begun = end_and_begin([memory.record for memory in old], record)
                for end in ended:
                    self.put(end)
                self.put(begun, takes_words=self._has_free_words(begun, stored))
            case _:
                pass

    def current(self, record: MemoryRecord, stored: ExistingMemories) -> ExistingMemories:
        """Apply the earlier decisions to `stored`, and return the result."""
        standing = standing_of(self._scope.tenant, record)
        same_id = None if stored.same_id is None else self._memories.get(stored.same_id.mid, stored.same_id)
        twin = self._holder(f"{standing.scope} {standing.words}", stored.twin)
        holder = self._holder(f"{standing.scope} {standing.slot}", stored.holder) if standing.slot else None
        return ExistingMemories(same_id, twin, holder)

    async def find(self, ids: Sequence[str]) -> list[StoredMemory | None]:
        memories = await self._store.find(self._scope, ids)
        mids = [self._store.mid(self._scope, memory_id) for memory_id in ids]
        return [self._memories.get(mid, memory) for mid, memory in zip(mids, memories, strict=True)]

    def _holder(self, name: str, stored: StoredMemory | None) -> StoredMemory | None:
        if name in self._mids:
            return self._memories[self._mids[name]]
        # A memory that the batch changed has only the names noted for it.
        return None if stored is not None and stored.mid in self._memories else stored

    def _has_free_words(self, record: MemoryRecord, stored: ExistingMemories) -> bool:
        twin = self.current(record, stored).twin
        return twin is None or twin.record.id == record.id


async def store_settled(
    store: MemoryStore,
    neighbors: SimilarMemoryStore,
    commits: MemoryCommits,
    scope: Scope,
    records: Sequence[MemoryRecord],
    *,
    dedupe: bool,
) -> None:
    """Store records in atomic batches of 200. Raises IdTaken or Conflict.

    A repeat becomes evidence. A record with a taken slot supersedes the slot's current fact.
    """
    if len(records) > WRITE_BATCH and (taken_ids := await store.taken_ids(scope, records)):
        raise IdTaken(taken_ids)
    for start in range(0, len(records), WRITE_BATCH):
        await _store_batch(store, neighbors, commits, scope, records[start : start + WRITE_BATCH], dedupe)


async def _store_batch(
    store: MemoryStore, neighbors: SimilarMemoryStore, commits: MemoryCommits, scope: Scope, records: Sequence[MemoryRecord], dedupe: bool
) -> None:
    for _ in range(_TRIES):
        refused = await store.write_all(scope, records, dedupe=dedupe)
        if refused is None:
            return
        records = [record for record, state in zip(records, refused, strict=True) if state != "same"]
        decided = await decide(store, neighbors, scope, records, dedupe=dedupe)
        decisions = [(record.id, decision) for record, its_decisions in decided for decision in its_decisions]
        outcome = await commits.commit(scope, [decision for _, decision in decisions], CLIENT_STATEMENT)
        if outcome.taken_groups:
            raise IdTaken([decisions[position][0] for position in outcome.taken_groups])
        if outcome.done:
            return
    raise Conflict("the memories that these follow are constantly being changed by other requests: try again")


def independent(scope: Scope, records: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """Return all quarantined records, and records that share no id, words or slot with earlier ones."""
    taken_names: set[str] = set()
    chosen: list[MemoryRecord] = []
    for record in records:
        if record.quarantine is not None:
            chosen.append(record)
            continue
        standing = standing_of(scope.tenant, record)
        names = {record.id, *(f"{standing.scope} {name}" for name in (standing.words, standing.slot) if name)}
        if taken_names.isdisjoint(names):
            chosen.append(record)
        taken_names |= names
    return chosen


async def decide(
    store: MemoryStore, neighbors: SimilarMemoryStore, scope: Scope, records: Sequence[MemoryRecord], *, dedupe: bool = True
) -> list[tuple[MemoryRecord, list[Decision]]]:
    """Decide whether each record is new, is evidence or supersedes a fact.

    Commit all decisions in one batch, because each one builds on the earlier ones.
    """
    batch = _Batch(store, scope)
    decided: list[tuple[MemoryRecord, list[Decision]]] = []
    for record, stored in zip(records, await neighbors.load_existing(scope, records), strict=True):
        if record.quarantine is not None or is_turn(record):
            # The script compares messages when it stores them.
            decisions: list[Decision] = [Add(record, dedupe=False)]
        else:
            decisions = await _decide(batch, record, batch.current(record, stored), dedupe)
        for decision in decisions:
            batch.apply(decision, stored)
        decided.append((record, decisions))
    return decided


async def _decide(batch: _Batch, record: MemoryRecord, existing: ExistingMemories, dedupe: bool) -> list[Decision]:
    same_id = existing.same_id if existing.same_id is not None and existing.same_id.record.id == record.id else None
    twin = existing.twin if dedupe and same_id is None else None
    holder = existing.holder if existing.holder is None or same_id is None or existing.holder.mid != same_id.mid else None
    if twin is not None and repeats(record, twin.record):
        evidence, *more = evidence_of(record)
        merged = add_details(twin.record, record)
        first = AddEvidence(twin, evidence, record) if merged == twin.record else Update(twin, merged, evidence, record)
        return [first, *(AddEvidence(twin, piece) for piece in more)]
    if holder is None:
        return [Add(record, dedupe=dedupe and same_id is None and twin is None, expect=expected_version(same_id))]
    if same_id is None and begins_at(record) < begins_at(holder.record):
        return await _insert_former(batch, record, holder)
    return [Supersede([holder], record, same_id)]


async def decide_edit(
    store: MemoryStore, neighbors: SimilarMemoryStore, scope: Scope, memory: StoredMemory, edited: MemoryRecord
) -> list[Decision] | None:
    """Return the decisions for an edit that takes another fact's slot, or None if it takes no slot."""
    (existing,) = await neighbors.load_existing(scope, [edited])
    holder = existing.holder
    if holder is None or holder.mid == memory.mid:
        return None
    is_reworded = edited.text != memory.record.text
    if begins_at(edited) < begins_at(holder.record):
        inserted = await _insert_former(_Batch(store, scope), edited, holder)
        return [Update(memory, decision.record, edited=is_reworded) if isinstance(decision, Add) else decision for decision in inserted]
    return [Supersede([holder], edited, memory, edited=is_reworded)]


async def decide_ends(store: MemoryStore, scope: Scope, old: MemoryRecord, new: MemoryRecord) -> list[Update]:
    """Return updates that move the end of the preceding facts to the start of `new`."""
    began, begins = begins_at(old), begins_at(new)
    if begins == began or not old.supersedes:
        return []
    # A caller may have written any ids into `supersedes`.
    memories = {memory.mid: memory for memory in await store.find(scope, old.supersedes) if memory is not None}
    return [
        Update(memory, memory.record.model_copy(update={"valid_to": begins}))
        for memory in memories.values()
        if (memory.record.superseded_by, memory.record.valid_to, owner_name(memory.record)) == (old.id, began, owner_name(old))
    ]


async def _insert_former(batch: _Batch, record: MemoryRecord, current: StoredMemory) -> list[Decision]:
    """Return decisions that insert an older fact into a slot's history."""
    begins, former = begins_at(record), current.record.supersedes or []
    for _ in range(_MOST_FORMER):
        # A caller may have written any ids into `supersedes`.
        memories = await batch.find(former)
        own_memories = [memory for memory in memories if memory is not None and owner_name(memory.record) == owner_name(record)]
        before = [memory for memory in own_memories if memory.record.id != record.id]
        if len(before) < len(own_memories):
            # An edited fact does not supersede itself: replace it with the facts that it superseded.
            earlier = next(memory.record.supersedes or [] for memory in own_memories if memory.record.id == record.id)
            former = [*(memory.record.id for memory in before), *(name for name in earlier if name != record.id)]
            continue
        later = [memory for memory in before if begins_at(memory.record) > begins]
        if not later:
            break
        current = min(later, key=lambda memory: begins_at(memory.record))
        former = current.record.supersedes or []
    else:
        before = []
    ended = record.model_copy(update={"valid_to": begins_at(current.record), "superseded_by": current.record.id})
    decisions: list[Decision] = [Add(ended, dedupe=False, expect="", written=record)]
    for memory in before:
        if memory.record.valid_to is not None and memory.record.valid_to > begins >= begins_at(memory.record):
            decisions.append(Update(memory, memory.record.model_copy(update={"valid_to": begins, "superseded_by": record.id})))
    return decisions


def repeats(record: MemoryRecord, old: MemoryRecord) -> bool:
    """True if `record` repeats `old`, which has the same words. The types may differ.

    A repeat may add an event date, tags or metadata keys, but must not contradict `old`.
    """
    if record.pinned and not old.pinned:
        return False
    if None not in (record.event_date, old.event_date) and record.event_date != old.event_date:
        return False
    if record.valid_from is not None and record.valid_from < begins_at(old):
        return False
    if any(getattr(record, name) not in (None, getattr(old, name)) for name in ("valid_to", "expires_at", "slot", "category")):
        return False
    return all(old.metadata.get(name, value) == value for name, value in record.metadata.items())


def tells_the_same(record: MemoryRecord, old: MemoryRecord) -> bool:
    """True if `record` and `old`, which have the same words, mean the same thing.

    Unlike `repeats`, accepts messages. Relative times ("yesterday") must refer to the same day or
    month.
    """
    if not is_turn(record):
        return not is_turn(old) and repeats(record, old)
    if not is_turn(old):
        return ends_at(old) is None and is_plain(record)
    within = same_meaning(record.text, record.created_at)
    same_time = within is None or within[0] <= old.created_at < within[1]
    return same_time and record.metadata.get("role") == old.metadata.get("role") and is_plain(record)


def add_details(old: MemoryRecord, record: MemoryRecord) -> MemoryRecord:
    """Return `old` with the tags, metadata, date and type that a repeat adds.

    If the repeat adds nothing, return `old` itself.
    """
    update: dict[str, object] = {}
    if old.event_date is None and record.event_date is not None:
        update["event_date"] = record.event_date
    kinds = old.memory_type, record.memory_type
    named = "memory_type" in record.model_fields_set and record.source_class is None and old.source_class not in (None, "client")
    if kinds[0] is not kinds[1] and MemoryTypeEnum.MESSAGE is not kinds[1] and (MemoryTypeEnum.MESSAGE is kinds[0] or named):
        update["memory_type"] = record.memory_type
    for name in ("topics", "entities"):
        old_values, new_values = getattr(old, name) or [], getattr(record, name) or []
        if set(new_values) - set(old_values):
            update[name] = list(dict.fromkeys([*old_values, *new_values]))[:64]
    if set(record.metadata) - set(old.metadata):
        update["metadata"] = {**record.metadata, **old.metadata}
    return old.model_copy(update=update) if update else old


def remove_details(record: MemoryRecord, statement: MemoryRecord) -> MemoryRecord:
    """Return `record` without the tags and metadata that it shares with `statement`."""
    update: dict[str, object] = {
        "metadata": {
            name: value for name, value in record.metadata.items() if name not in statement.metadata or statement.metadata[name] != value
        }
    }
    for name in ("topics", "entities"):
        its_values = getattr(statement, name) or []
        update[name] = [value for value in getattr(record, name) or [] if value not in its_values]
    return record.model_copy(update=update)
