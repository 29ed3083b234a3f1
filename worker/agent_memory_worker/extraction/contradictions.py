"""Find contradictions between similar facts while tenants are idle.

Similarity alone never makes a fact outdated. A crashed pass can safely be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from agent_memory.features.access.context_limits import ContextLimits
from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.features.extraction.fact_wording import says_same
from agent_memory.features.extraction.facts import Candidate
from agent_memory.features.extraction.reconcile_prompts import VERSION
from agent_memory.features.extraction.rules import ExtractionRulesService
from agent_memory.features.memories.changes.store import ChangeStore, StoredChange
from agent_memory.features.memories.commit import ChangeKind, ChangeOrigin, MemoryCommits, Supersede
from agent_memory.features.memories.duplicates.store import MergeStore, pair_by_words
from agent_memory.features.memories.records import StoredMemory, evidence_of, source_of, trust_of
from agent_memory.features.memories.shown_memories import ShownMemoryReader
from agent_memory.features.memories.similar_memories import SimilarMemoryStore, comparable_memories
from agent_memory.features.memories.upkeep.idle import QUIET_SECONDS, IdleTenants
from agent_memory.features.memories.upkeep.scan import MemoryScan, Selection
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import ModelAnswerInvalid, ModelUnavailable
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.llm.base import ChatModel
from agent_memory.foundation.storage.job_times import JobTimes
from agent_memory.foundation.text.normalization import begins_at
from agent_memory.runtime import Runtime
from agent_memory_client.models import MemoryRecord, MemoryStrategyConfig, MemoryType, MemoryTypeEnum
from agent_memory_worker.extraction.reconcile import OpenFact, judge_facts

log = get_logger(__name__)

_JOB = "contradictions"
# The maximum numbers of changed facts in a batch, and of batches and model calls in a pass.
_FACTS_PER_BATCH = 32
_BATCHES_PER_PASS = 100
_CALLS_PER_PASS = 8
# The maximum number of a memory's latest changes to read.
_MOST_CHANGES = 100
_LASTING = (MemoryTypeEnum.SEMANTIC, MemoryTypeEnum.PROCEDURAL)


@dataclass(frozen=True, slots=True)
class _Fact:
    """A fact, its last mention (epoch seconds), and whether a caller edited it."""

    memory: StoredMemory
    last_said: float
    edited: bool


@dataclass(frozen=True, slots=True)
class _Question:
    """A fact, and the earlier facts that it may supersede."""

    newer: _Fact
    older: list[_Fact]


@dataclass(slots=True)
class _Pass:
    """A pass over one tenant's facts.

    `ended` counts superseded facts, and `touched` contains the mids of changed memories.
    """

    runtime: Runtime
    scope: Scope
    quiet_seconds: float
    calls: int = _CALLS_PER_PASS
    ended: int = 0
    touched: set[str] = field(default_factory=set[str])

    async def is_idle(self) -> bool:
        """True while the tenant is idle. Work caused by this pass counts as activity."""
        return bool(await self.runtime[IdleTenants].idle_tenants([self.scope.tenant], self.quiet_seconds))


async def find_contradictions(runtime: Runtime, quiet_seconds: float = QUIET_SECONDS) -> int:
    """Compare idle tenants' changed facts. Return the number superseded or proposed as outdated."""
    tenants = await runtime[MemoryScan].memory_tenants()
    ended = 0
    for tenant in await runtime[IdleTenants].idle_tenants(tenants, quiet_seconds):
        work = _Pass(runtime, scope_of_work(tenant), quiet_seconds)
        try:
            await _look_on(work)
        except ModelUnavailable as error:
            log.warning("facts not compared", tenant=tenant, error=error)
        ended += work.ended
    return ended


async def _look_on(work: _Pass) -> None:
    for _ in range(_BATCHES_PER_PASS):
        if not await _compare_batch(work):
            return


async def _compare_batch(work: _Pass) -> bool:
    """Judge the next batch of pairs. Return False if no facts are left or the pass must stop.

    The cursor advances only if the batch completes. Raises ModelUnavailable.
    """
    runtime, scope = work.runtime, work.scope
    cursor = f"{_JOB}:{scope.tenant}"
    since = await runtime[JobTimes].looked_until(cursor)
    facts = Selection(memory_type=MemoryType(ne=MemoryTypeEnum.MESSAGE))
    changed, until = await runtime[MemoryScan].load_changed(scope, facts, since, _FACTS_PER_BATCH)
    imported = await runtime[MergeStore].load_imported(runtime.keys.uncompared(scope.tenant), _FACTS_PER_BATCH)
    changed += await runtime[MemoryScan].load_current(scope, sorted({*imported} - {memory.mid for memory in changed}))
    if not (imported or until != since) or not await work.is_idle():  # New facts may not be embedded yet.
        return False
    complete = True
    if pairs := await _pairs(runtime, scope, changed):
        chat = runtime[TenantModels].chat(scope.tenant)
        settled = [pair for pair in pairs if _other_value(*pair)]
        for question in _grouped(settled):
            if await _carry_out(work, question, None):
                await _remember(runtime, [question])
        # Without a model that extracts facts, only slots are judged. A later model judges the other pairs when their
        # facts change again.
        if chat is not None and runtime.extracts:
            complete = await _judge(work, chat, _grouped([pair for pair in pairs if not _other_value(*pair)]))
    if complete and imported:
        await runtime[MergeStore].note_compared(runtime.keys.uncompared(scope.tenant), imported)
    if complete and until != since:
        await runtime[JobTimes].note_looked(cursor, until)
    return complete


async def _judge(work: _Pass, chat: ChatModel, questions: Sequence[_Question]) -> bool:
    """Have a model judge pairs, and apply its decisions. Return True if all pairs were judged.

    If a response is unusable, split the batch, or skip the fact if it is the only one. Raises
    ModelUnavailable.
    """
    waiting = [questions] if questions else []
    while waiting:
        if not work.calls or not await work.is_idle():
            return False
        work.calls -= 1
        group = waiting.pop(0)
        try:
            answers = await _ask(work.runtime, chat, group)
        except ModelAnswerInvalid as error:
            if half := len(group) // 2:
                waiting[:0] = [group[:half], group[half:]]
                continue
            fact = group[0].newer.memory.record.id
            log.warning("fact not compared with similar facts", tenant=work.scope.tenant, memory_id=fact, model=chat.model, error=error)
            answers = [_Question(question.newer, []) for question in group]
        done = [await _carry_out(work, answer, chat.model) for answer in answers]
        await _remember(work.runtime, [question for question, judged in zip(group, done, strict=True) if judged])
    return True


async def _remember(runtime: Runtime, questions: Sequence[_Question]) -> None:
    pairs = [pair_by_words(question.newer.memory, older.memory) for question in questions for older in question.older]
    await runtime[MergeStore].remember_judged(pairs)


async def _pairs(runtime: Runtime, scope: Scope, changed: Sequence[StoredMemory]) -> list[tuple[_Fact, _Fact]]:
    """Return pairs of similar facts that have not been judged yet, as (later, earlier)."""
    vectors = await runtime[MemoryScan].load_vectors([memory.mid for memory in changed])
    facts = [memory for memory in changed if memory.mid in vectors and _compared(memory)]
    if not facts:
        return []
    stacked = np.stack([vectors[memory.mid] for memory in facts])
    around = await runtime[SimilarMemoryStore].load_near(scope, [memory.record for memory in facts], stacked)
    near: dict[tuple[str, str], tuple[StoredMemory, StoredMemory]] = {}
    for memory, around_fact in zip(facts, around, strict=True):
        others = replace(around_fact, near=[(other, value) for other, value in around_fact.near if other.mid != memory.mid], holder=None)
        for other in filter(_compared, await comparable_memories(memory.record, others)):
            first, second = sorted((memory, other), key=lambda either: either.mid)
            near[first.mid, second.mid] = first, second
    already_judged = await runtime[MergeStore].are_judged([pair_by_words(*pair) for pair in near.values()])
    unknown = [pair for pair, judged in zip(near.values(), already_judged, strict=True) if not judged]
    mids = list({memory.mid for pair in unknown for memory in pair})
    rows = {row.name: row for row in await runtime[ShownMemoryReader].load_rows(mids)} if mids else {}
    pairs: list[tuple[_Fact, _Fact]] = []
    for pair in unknown:
        older, newer = sorted(
            (_Fact(memory, rows[memory.mid].last_said, rows[memory.mid].edited) for memory in pair),
            key=lambda fact: (fact.last_said, fact.memory.version),
        )
        if older.memory.record.memory_type in _LASTING and older.last_said < newer.last_said:
            pairs.append((newer, older))
    return pairs


def _compared(memory: StoredMemory) -> bool:
    record = memory.record
    return record.quarantine is None and record.extraction_strategy != "summary" and record.memory_type is not MemoryTypeEnum.MESSAGE


def _other_value(newer: _Fact, older: _Fact) -> bool:
    """True if the facts have the same source class but different values for one slot."""
    new_record, old_record = newer.memory.record, older.memory.record
    alike = new_record.slot is not None and (new_record.slot, new_record.source_class) == (old_record.slot, old_record.source_class)
    return alike and not says_same(new_record.text, old_record.text)


def _grouped(pairs: Sequence[tuple[_Fact, _Fact]]) -> list[_Question]:
    questions: dict[str, _Question] = {}
    for newer, older in pairs:
        questions.setdefault(newer.memory.mid, _Question(newer, [])).older.append(older)
    return list(questions.values())


async def _ask(runtime: Runtime, chat: ChatModel, questions: Sequence[_Question]) -> list[_Question]:
    """Ask the model which older facts are outdated, and drop the others from the questions.

    Raises ModelUnavailable or ModelAnswerInvalid.
    """
    await runtime[ContextLimits].load_learned(chat)
    memories = list({older.memory.mid: older.memory for question in questions for older in question.older}.values())
    numbers = {memory.mid: number for number, memory in enumerate(memories, start=1)}
    open_facts = [
        OpenFact(
            Candidate(question.newer.memory.record, evidence_of(question.newer.memory.record)[0], witnessed=True),
            [numbers[older.memory.mid] for older in question.older],
        )
        for question in questions
    ]
    answers = await judge_facts(runtime, chat, memories, open_facts)
    ends = [set(answer.of) if answer.action == "SUPERSEDE" else set[int]() for answer in answers]
    return [
        _Question(question.newer, [older for older in question.older if numbers[older.memory.mid] in places])
        for question, places in zip(questions, ends, strict=True)
    ]


async def _carry_out(work: _Pass, question: _Question, model: str | None) -> bool:
    """Supersede a question's older facts, or propose to do so.

    Return True if all older facts have been decided.
    """
    runtime, newer = work.runtime, question.newer.memory
    if not question.older:
        return True
    history = await _changes(runtime, work.scope, [newer, *(older.memory for older in question.older)])
    undecided = [older for older in question.older if not _decided_before(history, newer, older.memory)]
    olds = [older for older in undecided if work.touched.isdisjoint((newer.mid, older.memory.mid))]
    if not olds:
        return not undecided
    record = newer.record
    ref = SessionRef("", record.namespace, record.user_id)
    rules = await runtime[ExtractionRulesService].of_session(work.scope, ref, MemoryStrategyConfig())
    review = (
        rules.review
        or runtime.settings.longterm.review_supersessions
        or any(_is_own_word(history, older) or _counts_more(older.memory.record, record) for older in olds)
    )
    origin = ChangeOrigin("contradictions", "said later than what it ends", model=model, prompt_version=model and VERSION)
    outcome = await runtime[MemoryCommits].commit(
        work.scope,
        [Supersede([older.memory for older in olds], record, newer)],
        origin,
        background=True,
        allow_pinned=review,
        review=review,
    )
    if outcome.done:
        work.touched.update((newer.mid, *(older.memory.mid for older in olds)))
        work.ended += len(olds)
    return outcome.done and len(olds) == len(undecided)


async def _changes(runtime: Runtime, scope: Scope, memories: Sequence[StoredMemory]) -> dict[str, list[StoredChange]]:
    changes = runtime[ChangeStore]
    ledgers = await changes.load_ledgers([memory.mid for memory in memories])
    names = list(dict.fromkeys(name for ledger in ledgers for name in ledger.changes[-_MOST_CHANGES:]))
    loaded = {change.id: change for change in await changes.load_changes(scope, names) if change is not None}
    return {
        memory.mid: [loaded[name] for name in ledger.changes if name in loaded] for memory, ledger in zip(memories, ledgers, strict=True)
    }


def _decided_before(history: dict[str, list[StoredChange]], newer: StoredMemory, older: StoredMemory) -> bool:
    decided = {change.id for change in history[newer.mid] if change.kind is ChangeKind.SUPERSEDE}
    return any(change.id in decided for change in history[older.mid])


def _is_own_word(history: dict[str, list[StoredChange]], fact: _Fact) -> bool:
    """True if a caller pinned or edited the fact."""
    edits = (change for change in history[fact.memory.mid] if change.kind is ChangeKind.UPDATE and change.origin.get("actor") == "client")
    return fact.memory.record.pinned or fact.edited or any(edits)


def _counts_more(older: MemoryRecord, newer: MemoryRecord) -> bool:
    """True if a person must approve replacing `older` with `newer`."""
    written = source_of(older) == "client" != source_of(newer)
    return written or trust_of(newer) < trust_of(older) or begins_at(older) > begins_at(newer)
