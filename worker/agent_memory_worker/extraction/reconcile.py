"""Decide how new facts change memories."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import partial

from agent_memory.features.access.context_limits import ContextLimits
from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.features.extraction.fact_wording import DENIALS, says_same
from agent_memory.features.extraction.facts import Candidate
from agent_memory.features.extraction.reconcile_prompts import DecisionAnswer, ExistingNote, NewNote, ReconcileAnswer, reconcile_notes
from agent_memory.features.memories.commit import Add, AddEvidence, Decision, Supersede, Update
from agent_memory.features.memories.records import StoredMemory, combine_trust
from agent_memory.features.memories.similar_memories import ExistingMemories, SimilarMemoryStore, comparable_memories
from agent_memory.foundation.core.errors import ContextExceeded
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.llm.base import ChatModel
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.text.normalization import begins_at
from agent_memory.foundation.text.terms import stems
from agent_memory.runtime import Runtime
from agent_memory_client.models import MemoryRecord, MemoryTypeEnum

log = get_logger(__name__)

_NOTE_TOKENS = 200
_LEAST_NOTE_TOKENS = 16
# Tokens that a prompt adds to a note, and that a decision takes in the answer.
_NOTE_LINE_TOKENS = 45
_DECISION_TOKENS = 24
_NEGATION = re.compile(rf"\b(?:{DENIALS})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OpenFact:
    """A fact for the model to judge, and the 1-based numbers of its neighbors in the prompt."""

    candidate: Candidate
    near: list[int]


async def decide(runtime: Runtime, chat: ChatModel, scope: Scope, facts: Sequence[Candidate]) -> list[Decision]:
    """Decide whether each fact is new, or updates, supersedes or supports an existing memory.

    Raises ModelUnavailable or ModelAnswerInvalid.
    """
    # Quarantined facts are stored, and change no other memory.
    quarantined: list[Decision] = [Add(fact.record, dedupe=False) for fact in facts if fact.record.quarantine is not None]
    facts = [fact for fact in facts if fact.record.quarantine is None]
    if not facts:
        return quarantined
    records = [fact.record for fact in facts]
    vectors = await runtime[TenantModels].embedder(scope.tenant).embed([record.text for record in records])
    around = await runtime[SimilarMemoryStore].load_near(scope, records, vectors)
    decisions: list[Decision] = quarantined
    numbered_memories: dict[str, tuple[int, StoredMemory]] = {}
    open_facts: list[OpenFact] = []
    fresh: list[MemoryRecord] = []
    holders: dict[str, str] = {}
    apart: set[str] = set()
    for candidate, around_fact in zip(facts, around, strict=True):
        if around_fact.same_id is not None:
            continue  # This fact was stored before, and may have ended: an old message must not revive it.
        same = await run_in_thread(partial(_same, candidate.record, around_fact), around_fact.characters)
        if same is not None:
            decisions += _evidence(candidate, same)
            continue
        if around_fact.twin is not None:
            apart.add(candidate.record.id)
        near = await comparable_memories(candidate.record, around_fact)
        if not near:
            fresh.append(candidate.record)
            continue
        if around_fact.holder is not None:
            holders[candidate.record.id] = around_fact.holder.mid
        for memory in near:
            numbered_memories.setdefault(memory.mid, (len(numbered_memories) + 1, memory))
        open_facts.append(OpenFact(candidate, [numbered_memories[memory.mid][0] for memory in near]))
    if open_facts:
        memories = [memory for _, memory in numbered_memories.values()]
        answers = _with_slots(memories, open_facts, await judge_facts(runtime, chat, memories, open_facts), holders)
        judged, added = _apply_answers(memories, open_facts, answers, holders)
        decisions += judged
        fresh += added
    settled = _one_per_slot(decisions, fresh, holders)
    return [Add(decision.record, apart=decision.record.id in apart) if isinstance(decision, Add) else decision for decision in settled]


def _same(record: MemoryRecord, around: ExistingMemories) -> StoredMemory | None:
    """Return the existing memory with the same wording as the fact, or None."""
    twin = around.twin
    if twin is not None and len({record.event_date.date() for record in (record, twin.record) if record.event_date is not None}) < 2:
        return twin
    wording = _wording(record)
    return next((memory for memory, _ in around.near if wording[0] and _wording(memory.record) == wording), None)


def _wording(record: MemoryRecord) -> tuple[object, ...]:
    return (
        tuple(stems(record.text)),
        len(_NEGATION.findall(record.text)) % 2,
        record.memory_type,
        record.event_date and record.event_date.date(),
    )


def _evidence(candidate: Candidate, same: StoredMemory) -> list[Decision]:
    if not candidate.witnessed:
        return []
    if same.record.event_date is None and candidate.record.event_date is not None and not same.record.pinned:
        return [Update(same, same.record.model_copy(update={"event_date": candidate.record.event_date}), candidate.evidence)]
    return [AddEvidence(same, candidate.evidence)]


async def judge_facts(
    runtime: Runtime, chat: ChatModel, memories: Sequence[StoredMemory], open_facts: Sequence[OpenFact]
) -> list[DecisionAnswer]:
    """Return a valid decision for each fact, with as few model calls as possible.

    If the response omits a fact or refers to unknown memories, the fact is added.
    """
    decided: list[DecisionAnswer] = []
    most = len(open_facts)
    tokens = min(_NOTE_TOKENS, max(chat.context.window // (4 * (len(memories) + len(open_facts))), _LEAST_NOTE_TOKENS))
    characters = sum(len(memory.record.text) for memory in memories) + sum(len(fact.candidate.record.text) for fact in open_facts)
    while len(decided) < len(open_facts):
        rest = open_facts[len(decided) : len(decided) + most]
        group = await run_in_thread(partial(_fitting, runtime, chat, memories, rest, tokens), characters)
        try:
            decided += await _decisions(runtime, chat, memories, group, tokens)
        except ContextExceeded:
            await runtime[ContextLimits].save_learned(chat)
            if len(group) > 1:
                most = len(group) // 2
            elif tokens > _LEAST_NOTE_TOKENS:
                tokens = max(tokens // 2, _LEAST_NOTE_TOKENS)
            else:
                raise
    return decided


def _fitting(
    runtime: Runtime, chat: ChatModel, memories: Sequence[StoredMemory], open_facts: Sequence[OpenFact], tokens: int
) -> Sequence[OpenFact]:
    """Return the first facts that fit into one model call, but at least one."""
    room = chat.room(reconcile_notes([], []), ReconcileAnswer)
    shown_numbers: set[int] = set()
    for number, open_ in enumerate(open_facts):
        new = set(open_.near) - shown_numbers
        texts = [open_.candidate.record.text, *(memories[k - 1].record.text for k in new)]
        room -= sum(min(runtime.counter.count(text, tokens), tokens) + _NOTE_LINE_TOKENS for text in texts) + _DECISION_TOKENS
        if number and room < 0:
            return open_facts[:number]
        shown_numbers |= new
    return open_facts


async def _decisions(
    runtime: Runtime, chat: ChatModel, memories: Sequence[StoredMemory], open_facts: Sequence[OpenFact], tokens: int
) -> list[DecisionAnswer]:
    numbers = sorted({k for open_ in open_facts for k in open_.near})
    prompt_numbers = {k: number for number, k in enumerate(numbers, start=1)}
    existing, candidates = [memories[k - 1].record for k in numbers], [open_.candidate.record for open_ in open_facts]
    characters = sum(len(record.text) for record in (*existing, *candidates))
    texts = await run_in_thread(lambda: [runtime.counter.truncate(record.text, tokens) for record in (*existing, *candidates)], characters)
    notes = [
        ExistingNote(text, record.memory_type.value, _when(record), record.slot)
        for text, record in zip(texts[: len(existing)], existing, strict=True)
    ]
    new = [
        NewNote(text, record.memory_type.value, _when(record), [prompt_numbers[k] for k in open_.near], record.slot)
        for text, open_, record in zip(texts[len(existing) :], open_facts, candidates, strict=True)
    ]
    answer = await chat.structured(reconcile_notes(notes, new), ReconcileAnswer)
    by_number = {decision.n: decision for decision in answer.decisions}
    decided: list[DecisionAnswer] = []
    for number, open_ in enumerate(open_facts, start=1):
        add = DecisionAnswer(n=number, action="ADD")
        decision = by_number.get(number, add)
        of = [numbers[k - 1] for k in decision.of if 1 <= k <= len(numbers)]
        if decision.action != "ADD" and (not of or len(of) < len(decision.of) or not set(of) <= set(open_.near)):
            record = open_.candidate.record
            subject = {"session_id": record.session_id, "memory_id": record.id, "model": chat.model}
            log.warning("model decided about facts outside its prompt; adding the new fact", **subject)
            decision, of = add, []
        decided.append(decision.model_copy(update={"of": of}))
    return decided


def _with_slots(
    memories: Sequence[StoredMemory], open_facts: Sequence[OpenFact], answers: Sequence[DecisionAnswer], holders: Mapping[str, str]
) -> list[DecisionAnswer]:
    """Mark added facts as repeating or superseding the current value of their slot."""
    places = {memory.mid: place for place, memory in enumerate(memories, start=1)}
    judged: list[DecisionAnswer] = []
    for open_, answer in zip(open_facts, answers, strict=True):
        record = open_.candidate.record
        place = places.get(holders.get(record.id, ""))
        if answer.action == "ADD" and place is not None:
            action = "NONE" if says_same(record.text, memories[place - 1].record.text) else "SUPERSEDE"
            answer = answer.model_copy(update={"action": action, "of": [place]})
        judged.append(answer)
    return judged


def _when(record: MemoryRecord) -> str:
    moment = record.event_date or begins_at(record)
    return moment.astimezone(UTC).date().isoformat()


def _apply_answers(
    memories: Sequence[StoredMemory], open_facts: Sequence[OpenFact], answers: Sequence[DecisionAnswer], holders: Mapping[str, str]
) -> tuple[list[Decision], list[MemoryRecord]]:
    """Return the decisions that change memories, and the remaining facts to add.

    Pinned memories never change, and events never end. At most one fact in a batch can change a
    given memory.
    """
    decisions: list[Decision] = []
    fresh: list[MemoryRecord] = []
    touched: set[str] = set()
    # If several facts belong to a slot that has a value, the latest fact supersedes the value.
    pairs = sorted(zip(open_facts, answers, strict=True), key=lambda pair: begins_at(pair[0].candidate.record), reverse=True)
    for open_, answer in pairs:
        candidate, record = open_.candidate, open_.candidate.record
        of = [memories[k - 1] for k in dict.fromkeys(answer.of)]
        if answer.action == "NONE":
            decisions += _evidence(candidate, of[0])
            continue
        if answer.action == "SUPERSEDE":
            ended = [memory for memory in of if _may_end(memory, record) and memory.mid not in touched]
            if ended:
                touched.update(memory.mid for memory in ended)
                decisions.append(Supersede(ended, record))
                continue
            former = _former(of, record, holders)
            if former is not None:
                record = former
        elif answer.action == "UPDATE" and _may_grow(of[0], record) and of[0].mid not in touched:
            touched.add(of[0].mid)
            grown = _extend_memory(of[0].record, record)
            if holders.get(record.id, of[0].mid) != of[0].mid:
                grown = grown.model_copy(update={"slot": of[0].record.slot})
            decisions.append(Update(of[0], grown, candidate.evidence))
            continue
        fresh.append(record)
    return decisions, fresh


def _former(of: Sequence[StoredMemory], record: MemoryRecord, holders: Mapping[str, str]) -> MemoryRecord | None:
    """Return the record as a former value of its slot.

    Return None if it is not older than the current value, or if that value is pinned.
    """
    holder = next((memory.record for memory in of if memory.mid == holders.get(record.id)), None)
    if holder is None or holder.pinned or begins_at(holder) <= begins_at(record):
        return None
    ends = min(time for time in (record.valid_to, begins_at(holder)) if time is not None)
    return record.model_copy(update={"valid_to": ends, "superseded_by": holder.id})


def _may_end(memory: StoredMemory, by: MemoryRecord) -> bool:
    old = memory.record
    lasting = old.memory_type in (MemoryTypeEnum.SEMANTIC, MemoryTypeEnum.PROCEDURAL)
    return lasting and not old.pinned and begins_at(old) <= begins_at(by)


def _may_grow(memory: StoredMemory, by: MemoryRecord) -> bool:
    old = memory.record
    if old.pinned or old.memory_type is not by.memory_type:
        return False
    days = {record.event_date.date() for record in (old, by) if record.event_date is not None}
    return len(days) < 2


def _extend_memory(old: MemoryRecord, new: MemoryRecord) -> MemoryRecord:
    """Return the old memory updated with the new text, tags and dates.

    Dates from a caller take precedence over inferred dates.
    """
    update = {name: getattr(new, name) for name in ("text", "model", "prompt_version", "updated_at", "memory_hash")}
    first, second = (old, new) if old.source_class in (None, "client") else (new, old)
    for name in ("slot", "category", "event_date", "valid_from", "valid_to", "expires_at"):
        update[name] = getattr(first, name) if getattr(first, name) is not None else getattr(second, name)
    for name in ("topics", "entities"):
        update[name] = list(dict.fromkeys([*(getattr(old, name) or ()), *(getattr(new, name) or ())]))[:64]
    return old.model_copy(update=update | combine_trust([old, new]))


def _one_per_slot(decisions: Sequence[Decision], fresh: Sequence[MemoryRecord], holders: Mapping[str, str]) -> list[Decision]:
    """Return all decisions, limited to one current fact per slot.

    New facts for the same slot supersede each other in chronological order. `holders` maps fact ids
    to the mid of the slot's memory.
    """
    settled: list[Decision] = []
    records_by_slot: dict[str, MemoryRecord] = {}
    for decision in decisions:
        if isinstance(decision, Supersede):
            ends = {memory.mid for memory in decision.old}
            slot = decision.record.slot
            if slot in records_by_slot or holders.get(decision.record.id, "") not in {"", *ends}:
                decision = Supersede(decision.old, decision.record.model_copy(update={"slot": None}))
            elif slot is not None:
                records_by_slot[slot] = decision.record
        elif isinstance(decision, Update) and decision.record.slot != decision.memory.record.slot:
            slot = decision.record.slot
            if slot in records_by_slot or slot is None:
                decision = Update(
                    decision.memory, decision.record.model_copy(update={"slot": decision.memory.record.slot}), decision.evidence
                )
            else:
                records_by_slot[slot] = decision.record
        settled.append(decision)
    added: list[MemoryRecord] = []
    last: dict[str, int] = {}
    for record in sorted(fresh, key=begins_at):
        slot = record.slot
        current = records_by_slot.get(slot) if slot is not None else None
        if current is not None and begins_at(record) < begins_at(current) and record.valid_to is None:
            added.append(record.model_copy(update={"slot": None, "valid_to": begins_at(current), "superseded_by": current.id}))
            continue
        if slot is None or current is not None or record.id in holders:
            added.append(record.model_copy(update={"slot": None}) if slot else record)
            continue
        if slot in last:
            former = added[last[slot]]
            at = begins_at(record)
            added[last[slot]] = former.model_copy(update={"valid_to": at, "superseded_by": record.id})
            record = record.model_copy(update={"supersedes": [former.id], "valid_from": at})
        last[slot] = len(added)
        added.append(record)
    return [*settled, *map(Add, added)]
