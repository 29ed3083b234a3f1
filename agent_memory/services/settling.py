"""Settling without a model what a new memory is to those that are there: a repeat, a successor in its slot, or simply new."""

from __future__ import annotations

from collections.abc import Sequence

from agent_memory.errors import Conflict
from agent_memory.sameness import begins_at
from agent_memory.scope import Scope
from agent_memory.storage.decisions import Add, AddEvidence, Decision, DecisionStore, Origin, Supersede, Update
from agent_memory.storage.memories import MemoryStore
from agent_memory.storage.records import Found
from agent_memory_client.models import Evidence, MemoryRecord

_TRIES = 16
# How far back a fact that is learned late looks for its place.
_MOST_FORMER = 50
_CLIENT = Origin("client", "stated by a client")


async def store_settled(
    store: MemoryStore, decisions: DecisionStore, scope: Scope, records: Sequence[MemoryRecord], *, dedupe: bool
) -> None:
    """Stores records. One script for all that are new; each that repeats another or follows it in its slot is settled by itself."""
    for _ in range(_TRIES):
        states = await store.write(scope, records, dedupe=dedupe) or []
        conflicts = [(record, state) for record, state in zip(records, states, strict=True) if state.startswith(("twin ", "slot "))]
        if not conflicts:
            return
        found = await store.load(scope, [state.split(" ")[1] for _, state in conflicts])
        again: list[MemoryRecord] = []
        for (record, state), other in zip(conflicts, found, strict=True):
            if other is None:
                again.append(record)
                continue
            twin = state.startswith("twin")
            late = not twin and begins_at(record) < begins_at(other.record)
            decided = await _inserted(store, scope, record, other) if late else settle(record, other, twin=twin)
            settled = (await decisions.commit(scope, decided, _CLIENT)).done
            if not settled:
                again.append(record)
        if not again:
            return
        records = again
    raise Conflict("the memories that these follow are being changed by others all the time; try again")


async def _inserted(store: MemoryStore, scope: Scope, record: MemoryRecord, current: Found) -> list[Decision]:
    """Puts a fact that was learned late among the former facts of its slot: it was true until the next began, and ends the one before."""
    begins = begins_at(record)
    for _ in range(_MOST_FORMER):
        before = [one for one in await store.find(scope, current.record.supersedes or []) if one is not None]
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


def settle(record: MemoryRecord, other: Found, *, twin: bool) -> list[Decision]:
    """What to do with a record that has the words (`twin`) or the slot of a current memory."""
    if twin and repeats(record, other.record):
        evidence, *more = evidence_of(record)
        merged = enriched(other.record, record)
        first = AddEvidence(other, evidence, record) if merged == other.record else Update(other, merged, evidence, record)
        return [first, *(AddEvidence(other, one) for one in more)]
    if record.slot is not None and record.slot == other.record.slot:
        return [Supersede([other], record)]
    return [Add(record, dedupe=False)]


def repeats(record: MemoryRecord, old: MemoryRecord) -> bool:
    """Whether a record of the same words says nothing that contradicts a memory: no other time, slot, pin or metadata."""
    if record.pinned and not old.pinned:
        return False
    if record.valid_from is not None and record.valid_from < begins_at(old):
        return False
    if any(getattr(record, name) not in (None, getattr(old, name)) for name in ("valid_to", "expires_at", "slot", "category")):
        return False
    return all(old.metadata.get(name, value) == value for name, value in record.metadata.items())


def enriched(old: MemoryRecord, record: MemoryRecord) -> MemoryRecord:
    """A memory with the tags and the metadata that a repeat adds; itself when it adds none."""
    update: dict[str, object] = {}
    for name in ("topics", "entities"):
        mine, theirs = getattr(old, name) or [], getattr(record, name) or []
        if set(theirs) - set(mine):
            update[name] = list(dict.fromkeys([*mine, *theirs]))[:64]
    if set(record.metadata) - set(old.metadata):
        update["metadata"] = {**record.metadata, **old.metadata}
    return old.model_copy(update=update) if update else old


def evidence_of(record: MemoryRecord) -> list[Evidence]:
    """What a record rests on: what its writer says, else itself."""
    if record.evidence:
        return record.evidence
    return [
        Evidence(
            session_id=record.session_id,
            message_ids=record.extracted_from or [],
            source=record.source_class or "client",
            memory_id=record.id,
            at=record.created_at,
        )
    ]
