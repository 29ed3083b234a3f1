"""Merge duplicate memories.

Memories are compared by their words and, if a model can judge them, by their vectors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial

from agent_memory.features.access.context_limits import ContextLimits
from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.features.jobs.order_store import JobOrder
from agent_memory.features.memories.duplicates.prompts import RepeatsAnswer, find_repeats
from agent_memory.features.memories.duplicates.repeats import comparable, merge_records, plan, precedence
from agent_memory.features.memories.duplicates.store import MergeStore, pair_by_versions
from agent_memory.features.memories.upkeep.idle import QUIET_SECONDS, IdleTenants
from agent_memory.features.memories.upkeep.scan import MemoryScan, Selection, StoredMemory
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import ContextExceeded, ModelAnswerInvalid, ModelUnavailable
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.llm.base import ChatModel
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.llm.tokens import first_fitting
from agent_memory.foundation.storage.job_times import JobTimes
from agent_memory.foundation.text.normalization import Kin, kin
from agent_memory.foundation.text.terms import terms
from agent_memory.runtime import Runtime
from agent_memory_client.models import MemoryRecord, MemoryType, MemoryTypeEnum

log = get_logger(__name__)

_JOB = "compact"
_FACTS = Selection(memory_type=MemoryType(ne=MemoryTypeEnum.MESSAGE))
# Memories that changed up to 10 minutes before the last pass are compared again: their vectors may have arrived later.
_OVERLAP_MICROS = 600_000_000
_QUERIES = 100
_IMPORTED = 1000
_MOST_TWINS = 1000
_MOST_NEAR = 16
_PAIRS_PER_CALL = 20
# Tokens that a prompt adds for a pair and its answer.
_PAIR_TOKENS = 24


async def compact_changed(runtime: Runtime, quiet_seconds: float = QUIET_SECONDS) -> int:
    """Merge duplicates of changed memories. Return the number merged."""
    began = await runtime[MemoryScan].redis_time()
    since = await runtime[JobTimes].looked_until(_JOB)
    tenants = await runtime[MemoryScan].memory_tenants()
    merged_count = 0
    for tenant in tenants:
        async for page in runtime[MemoryScan].walk_memories(scope_of_work(tenant), _FACTS, by="changed", since=since):
            merged_count += await _merge_repeats(runtime, scope_of_work(tenant), [memory for memory in page if memory.version >= since])
    idle = await runtime[IdleTenants].idle_tenants(tenants, quiet_seconds)
    for tenant in idle:
        merged_count += await _compact_imported(runtime, tenant)
    if _judges(runtime):
        for tenant in tenants:
            merged_count += await _compact_similar(runtime, tenant, began if tenant in idle else None)
    await runtime[JobTimes].note_looked(_JOB, began)
    return merged_count


async def _compact_similar(runtime: Runtime, tenant: str, began: int | None) -> int:
    """Merge similar memories that changed since the last pass. Return the number merged.

    Do nothing if the tenant is busy (`began` is None).
    """
    cursor, scope = f"{_JOB}:{tenant}", scope_of_work(tenant)
    since = await runtime[JobTimes].looked_until(cursor)
    if began is None:
        return 0
    merged_count, complete = 0, True
    async for page in runtime[MemoryScan].walk_memories(scope, _FACTS, by="changed", since=max(since - _OVERLAP_MICROS, 0)):
        merged, all_judged = await _merge_similar(runtime, scope, page)
        merged_count, complete = merged_count + merged, complete and all_judged
        if not complete:
            break
    if complete:
        await runtime[JobTimes].note_looked(cursor, began)
    return merged_count


async def _compact_imported(runtime: Runtime, tenant: str) -> int:
    """Merge duplicates of imported memories. Return the number merged.

    The cursors can miss these memories, because their last changes may be older.
    """
    scope, waiting, merged_count, complete = scope_of_work(tenant), runtime.keys.unmerged(tenant), 0, True
    while complete and (mids := await runtime[MergeStore].load_imported(waiting, _IMPORTED)):
        merged_count += await _merge_repeats(runtime, scope, await _loaded(runtime, scope, mids))
        if _judges(runtime):
            merged, complete = await _merge_similar(runtime, scope, await _loaded(runtime, scope, mids))
            merged_count += merged
        if complete:
            await runtime[MergeStore].note_compared(waiting, mids)
    return merged_count


async def run_compaction(runtime: Runtime, order: JobOrder) -> None:
    scope = scope_of_work(order.tenant, order.namespaces, order.users)
    arguments = order.arguments
    await compact(runtime, scope, Selection.of(arguments["namespace"], arguments["user_id"], arguments["session_id"]))


async def compact(runtime: Runtime, scope: Scope, selection: Selection) -> int:
    """Merge duplicates of selected memories. Return the number merged."""
    fact_selection = selection.model_copy(update={"memory_type": _FACTS.memory_type})
    merged_count = 0
    async for page in runtime[MemoryScan].walk_memories(scope, fact_selection, by="changed"):
        merged_count += await _merge_repeats(runtime, scope, page)
        if _judges(runtime):
            current = await runtime[MemoryScan].load_current(scope, [memory.mid for memory in page])
            merged_count += (await _merge_similar(runtime, scope, current))[0]
    return merged_count


def _judges(runtime: Runtime) -> bool:
    return runtime.chat is not None and runtime.settings.compaction.semantic


def _selection_of(record: MemoryRecord) -> Selection:
    """Select memories with the record's namespace, user and type.

    Queries cannot require a missing namespace or user, so callers must also filter with `kin`.
    """
    return Selection.of(record.namespace, record.user_id).model_copy(update={"memory_type": MemoryType(eq=record.memory_type)})


async def _merge_repeats(runtime: Runtime, scope: Scope, page: Sequence[StoredMemory]) -> int:
    """Merge memories on the page with identically worded ones. Return the number merged."""
    families: dict[Kin, dict[str, StoredMemory]] = defaultdict(dict)

    def add_families() -> list[tuple[Selection, list[str]]]:
        for memory in page:
            families[kin(memory.record)][memory.mid] = memory
        records = [next(iter(family.values())).record for family in families.values()]
        return [(_selection_of(record), words) for record in records if (words := terms(record.text))]

    twin_searches = await run_in_thread(add_families, _characters(page))
    names: dict[str, None] = {}
    for start in range(0, len(twin_searches), _QUERIES):
        for twins in await runtime[MemoryScan].find_twins(scope, twin_searches[start : start + _QUERIES], _MOST_TWINS):
            names.update(dict.fromkeys(twins))
    for memory in page:
        names.pop(memory.mid, None)
    loaded = await _loaded(runtime, scope, list(names))
    kins = await run_in_thread(lambda: [kin(memory.record) for memory in loaded], _characters(loaded))
    for memory, same in zip(loaded, kins, strict=True):
        if (family := families.get(same)) is not None:
            family[memory.mid] = memory
    merged_count = 0
    for merge in (merge for family in families.values() if len(family) > 1 for merge in plan(list(family.values()))):
        if await runtime[MergeStore].merge_memories(scope, merge.stays, merge.merged, merge.repeats):
            merged_count += len(merge.repeats)
    return merged_count


async def _loaded(runtime: Runtime, scope: Scope, mids: Sequence[str]) -> list[StoredMemory]:
    loaded: list[StoredMemory] = []
    for start in range(0, len(mids), _QUERIES):
        loaded += await runtime[MemoryScan].load_current(scope, mids[start : start + _QUERIES])
    return loaded


async def _merge_similar(runtime: Runtime, scope: Scope, page: Sequence[StoredMemory]) -> tuple[int, bool]:
    """Merge similar memories if a model considers them equal.

    Return the number merged, and whether the pass is complete.
    """
    merged_count, complete = 0, True
    pairs = await _similar(runtime, scope, page)
    judged_apart = await runtime[MergeStore].are_judged([pair_by_versions(*pair) for pair in pairs])
    unjudged = [pair for pair, apart in zip(pairs, judged_apart, strict=True) if not apart]
    most = _PAIRS_PER_CALL
    while unjudged and (chat := runtime[TenantModels].chat(scope.tenant)) is not None:
        await runtime[ContextLimits].load_learned(chat)
        offered = unjudged[:most]
        batch = await run_in_thread(partial(_fitting, runtime, chat, offered), sum(_characters(pair) for pair in offered))
        try:
            same = await _judged(chat, batch)
        except ContextExceeded as error:
            await runtime[ContextLimits].save_learned(chat)
            if len(batch) > 1:
                most = len(batch) // 2
                continue
            # A pair that does not fit cannot be judged: both memories stay.
            memory_ids = [memory.record.id for memory in unjudged[0]]
            log.warning("two similar memories not compared", tenant=scope.tenant, memory_ids=memory_ids, model=chat.model, error=error)
            unjudged = unjudged[1:]
            continue
        except (ModelUnavailable, ModelAnswerInvalid) as error:
            log.warning("similar memories not compared", tenant=scope.tenant, pairs=len(batch), model=chat.model, error=error)
            # An unusable answer would be unusable again in the next pass.
            complete = isinstance(error, ModelAnswerInvalid)
            break
        for number, (stays, other) in enumerate(batch, start=1):
            if number in same:
                # A memory that has just been merged differs from the judged one; the next pass asks again.
                merged_count += int(
                    await runtime[MergeStore].merge_memories(scope, stays, merge_records(stays.record, [other.record]), [other])
                )
        different = [pair_by_versions(*pair) for number, pair in enumerate(batch, start=1) if number not in same]
        await runtime[MergeStore].remember_judged(different)
        unjudged = unjudged[len(batch) :]
    return merged_count, complete


def _fitting(
    runtime: Runtime, chat: ChatModel, pairs: Sequence[tuple[StoredMemory, StoredMemory]]
) -> Sequence[tuple[StoredMemory, StoredMemory]]:
    """Return the first pairs that fit into one model call, but at least one."""
    room = chat.room(find_repeats([]), RepeatsAnswer)
    return first_fitting(pairs, room, lambda pair: sum(runtime.counter.count(memory.record.text) for memory in pair) + _PAIR_TOKENS)


async def _similar(runtime: Runtime, scope: Scope, page: Sequence[StoredMemory]) -> list[tuple[StoredMemory, StoredMemory]]:
    """Return pairs of similar memories, as (memory to keep, memory to merge)."""
    candidates = [memory for memory in page if not memory.record.pinned]
    vectors = await runtime[MemoryScan].load_vectors([memory.mid for memory in candidates])
    memories_by_mid = {memory.mid: memory for memory in page}
    pairs: dict[tuple[str, str], tuple[StoredMemory, StoredMemory]] = {}
    with_vector = [memory for memory in candidates if memory.mid in vectors]
    radius = 1.0 - runtime.settings.compaction.similarity
    for start in range(0, len(with_vector), _QUERIES):
        batch = with_vector[start : start + _QUERIES]
        searches = [(_selection_of(memory.record), vectors[memory.mid]) for memory in batch]
        around = await runtime[MemoryScan].find_near(scope, searches, radius, _MOST_NEAR)
        missing = {near for neighbors in around for near in neighbors} - memories_by_mid.keys()
        memories_by_mid |= {memory.mid: memory for memory in await _loaded(runtime, scope, sorted(missing))}
        close = [
            (memory, memories_by_mid[near])
            for memory, nears in zip(batch, around, strict=True)
            for near in nears
            if near in memories_by_mid and near != memory.mid
        ]
        for stays, goes in await run_in_thread(partial(_comparable, close), sum(_characters(pair) for pair in close)):
            pairs.setdefault((stays.mid, goes.mid), (stays, goes))
    return list(pairs.values())


def _comparable(pairs: Sequence[tuple[StoredMemory, StoredMemory]]) -> list[tuple[StoredMemory, StoredMemory]]:
    ordered = [sorted(pair, key=precedence) for pair in pairs]
    return [(stays, goes) for stays, goes in ordered if comparable(stays.record, goes.record)]


def _characters(memories: Iterable[StoredMemory]) -> int:
    return sum(len(memory.record.text) for memory in memories)


async def _judged(chat: ChatModel, pairs: Sequence[tuple[StoredMemory, StoredMemory]]) -> set[int]:
    """Return the 1-based numbers of the pairs that a model considers equal."""
    answer = await chat.structured(find_repeats([(a.record.text, b.record.text) for a, b in pairs]), RepeatsAnswer)
    return {number for number in answer.same if 1 <= number <= len(pairs)}
