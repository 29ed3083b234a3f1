"""Settling without a model what a new memory is to those that are there: a repeat, a successor in its slot, or simply new."""

from __future__ import annotations

from collections.abc import Sequence

from agent_memory.core.errors import Conflict, IdTaken
from agent_memory.core.scope import Scope
from agent_memory.memories.commit import STATED, Add, AddEvidence, ChangeOrigin, Decision, MemoryCommits, Supersede, Update
from agent_memory.memories.neighbours import ExistingMemories, NeighbourStore
from agent_memory.memories.owners import owner_name
from agent_memory.memories.records import StoredMemory, evidence_of, standing
from agent_memory.memories.store import MemoryStore
from agent_memory.text.normalization import begins_at, ends_at, is_plain, is_turn
from agent_memory.text.time_expressions import names_relative_time
from agent_memory_client.models import MemoryRecord, MemoryTypeEnum

_TRIES = 16
# How far back a fact that is learned late looks for its place.
_MOST_FORMER = 50


async def store_settled(
    store: MemoryStore, neighbours: NeighbourStore, decisions: MemoryCommits, scope: Scope, records: Sequence[MemoryRecord], *, dedupe: bool
) -> None:
    """Stores records. One script for all that are new; each that repeats another or follows it in its slot is settled by itself.

    Raises IdTaken.
    """
    for _ in range(_TRIES):
        states = await store.write(scope, records, dedupe=dedupe) or []
        again = [record for record, state in zip(records, states, strict=True) if state.startswith(("twin ", "slot "))]
        if not again:
            return
        decided = await decide(store, neighbours, scope, again, dedupe=dedupe)
        settled: set[str] = set()
        for record, some in decided:
            outcome = await decisions.commit(scope, some, STATED)
            if outcome.taken:
                raise IdTaken([record.id])
            if outcome.done:
                settled.add(record.id)
        records = [record for record in again if record.id not in settled]
        if not records:
            return
    raise Conflict("the memories that these follow are being changed by others all the time; try again")


async def decide(
    store: MemoryStore, neighbours: NeighbourStore, scope: Scope, records: Sequence[MemoryRecord], *, dedupe: bool = True
) -> list[tuple[MemoryRecord, list[Decision]]]:
    """What is to be done with statements, each by itself. What shares words or a slot with one of them comes in another round, after it.

    What is in quarantine stands for itself: it ends no fact and repeats none.
    """
    aside = [record for record in records if record.quarantine is not None]
    records = [record for record in records if record.quarantine is None]
    alone: list[tuple[MemoryRecord, list[Decision]]] = [(record, [Add(record, dedupe=False)]) for record in aside]
    taken: set[str] = set()
    some: list[MemoryRecord] = []
    for record in records:
        place = standing(scope.tenant, record)
        names = {record.id, *(f"{place.scope} {name}" for name in (place.words, place.slot) if name)}
        if taken.isdisjoint(names):
            some.append(record)
        taken |= names
    held = await neighbours.held(scope, some)
    return [*alone, *[(record, await _decide(store, scope, record, one, dedupe)) for record, one in zip(some, held, strict=True)]]


async def _decide(store: MemoryStore, scope: Scope, record: MemoryRecord, held: ExistingMemories, dedupe: bool) -> list[Decision]:
    known = held.known if held.known is not None and held.known.record.id == record.id else None
    twin = held.twin if dedupe and known is None else None
    holder = held.holder if held.holder is None or known is None or held.holder.mid != known.mid else None
    if twin is not None and repeats(record, twin.record):
        evidence, *more = evidence_of(record)
        merged = enriched(twin.record, record)
        first = AddEvidence(twin, evidence, record) if merged == twin.record else Update(twin, merged, evidence, record)
        return [first, *(AddEvidence(twin, one) for one in more)]
    if holder is None:
        return [Add(record, dedupe=dedupe and known is None and twin is None)]
    if known is None and begins_at(record) < begins_at(holder.record):
        return await _inserted(store, scope, record, holder)
    return [Supersede([holder], record, known)]


async def decide_edit(
    store: MemoryStore, neighbours: NeighbourStore, scope: Scope, found: StoredMemory, edited: MemoryRecord
) -> list[Decision] | None:
    """What an edit that gives a memory a slot does to the fact that has it; None when nothing has."""
    (held,) = await neighbours.held(scope, [edited])
    holder = held.holder
    if holder is None or holder.mid == found.mid:
        return None
    if begins_at(edited) < begins_at(holder.record):
        inserted = await _inserted(store, scope, edited, holder)
        return [Update(found, one.record) if isinstance(one, Add) else one for one in inserted]
    return [Supersede([holder], edited, found)]


async def adopt_settled(store: MemoryStore, decisions: MemoryCommits, scope: Scope, records: Sequence[MemoryRecord]) -> list[str]:
    """As `MemoryStore.adopt`, and "repeat" for what says what a memory says that is here: it becomes its evidence, its id a name of it."""
    states = await store.adopt(scope, records)
    twins = {place: state.split(" ")[1] for place, state in enumerate(states) if state.startswith("twin ")}
    for place, other in zip(twins, await store.load(scope, list(twins.values())), strict=True):
        record = records[place]
        done = False
        if other is not None and repeats(record, other.record):
            pieces = [one.model_copy(update={"source": "import"}) for one in evidence_of(record)]
            decided = [AddEvidence(other, one, record) for one in pieces]
            done = (await decisions.commit(scope, decided, ChangeOrigin("move"), late=True)).done
        states[place] = "repeat" if done else (await store.adopt(scope, [record], dedupe=False))[0]
    return ["repeat" if state == "again" else state for state in states]


async def _inserted(store: MemoryStore, scope: Scope, record: MemoryRecord, current: StoredMemory) -> list[Decision]:
    """Puts a fact that was learned late among the former facts of its slot: it was true until the next began, and ends the one before."""
    begins = begins_at(record)
    for _ in range(_MOST_FORMER):
        # Whoever wrote it may have named anything there.
        found = await store.find(scope, current.record.supersedes or [])
        before = [one for one in found if one is not None and owner_name(one.record) == owner_name(record)]
        later = [one for one in before if begins_at(one.record) > begins]
        if not later:
            break
        current = min(later, key=lambda one: begins_at(one.record))
    else:
        before = []
    ended = record.model_copy(update={"valid_to": begins_at(current.record), "superseded_by": current.record.id})
    decisions: list[Decision] = [Add(ended, dedupe=False)]
    for one in before:
        if one.record.valid_to is not None and one.record.valid_to > begins >= begins_at(one.record):
            decisions.append(Update(one, one.record.model_copy(update={"valid_to": begins, "superseded_by": record.id})))
    return decisions


def repeats(record: MemoryRecord, old: MemoryRecord) -> bool:
    """Whether a record of the same words says nothing that contradicts a memory: no other time, slot, pin or metadata.

    Its type alone is no difference: entrances have their own defaults, and models their own opinion.
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
    """As `repeats`, also of messages: those of one role tell the same, unless they speak of their own day."""
    if not is_turn(record):
        return not is_turn(old) and repeats(record, old)
    if not is_turn(old):
        return ends_at(old) is None and is_plain(record)
    same_day = record.created_at.date() == old.created_at.date() or not names_relative_time(record.text)
    return same_day and record.metadata.get("role") == old.metadata.get("role") and is_plain(record)


def enriched(old: MemoryRecord, record: MemoryRecord) -> MemoryRecord:
    """A memory with the tags, the metadata and the date that a repeat adds; itself when it adds none.

    A type that somebody named counts more than one that was inferred, and every type more than "message", which is what a session's
    memories are unless they say so.
    """
    update: dict[str, object] = {}
    if old.event_date is None and record.event_date is not None:
        update["event_date"] = record.event_date
    kinds = old.memory_type, record.memory_type
    named = "memory_type" in record.model_fields_set and record.source_class is None and old.source_class not in (None, "client")
    if kinds[0] is not kinds[1] and MemoryTypeEnum.MESSAGE is not kinds[1] and (MemoryTypeEnum.MESSAGE is kinds[0] or named):
        update["memory_type"] = record.memory_type
    for name in ("topics", "entities"):
        mine, theirs = getattr(old, name) or [], getattr(record, name) or []
        if set(theirs) - set(mine):
            update[name] = list(dict.fromkeys([*mine, *theirs]))[:64]
    if set(record.metadata) - set(old.metadata):
        update["metadata"] = {**record.metadata, **old.metadata}
    return old.model_copy(update=update) if update else old
