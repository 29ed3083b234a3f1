"""Switch the store to a new embedding model.

First add the new model's vectors, then switch, then delete the old vectors. Each step is idempotent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic

from ulid import ULID

from agent_memory.feature_list import FEATURES
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.reembed.store import MOST_MISSING, ReembedState, ReembedStore
from agent_memory.foundation.core.errors import AgentMemoryError, Conflict, ModelAnswerInvalid
from agent_memory.foundation.core.feature import import_name
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.storage.search.indexes import drop_index, former_indexes
from agent_memory.runtime import Runtime
from agent_memory_worker.memories.indexing import embed_jobs
from agent_memory_worker.refused_texts import embed_singly
from agent_memory_worker.relay import pause

log = get_logger(__name__)

_IDLE_SECONDS = 1.0
# This long after a process switches, all its searches that started with the former model have ended.
_SETTLE_SECONDS = 10.0


async def run_reembedding(bucket: Runtime, stop: asyncio.Event) -> None:
    """Re-embed a bucket whenever its embedding model changes, until `stop` is set."""
    worker = str(ULID())
    while not stop.is_set():
        seconds = _IDLE_SECONDS
        try:
            seconds = await _step(bucket, worker)
        except AgentMemoryError as error:
            log.warning("change of the embedding model waits", error=error)
        await pause(stop, seconds)


async def _step(bucket: Runtime, worker: str) -> float:
    """Perform a small step of a model change. Return the seconds until the next step."""
    store = bucket[ReembedStore]
    state = await store.load_state()
    if state is None or state.phase == "paused" or bucket.switch is None or not await store.take_turn(worker):
        return _IDLE_SECONDS
    active, other = (bucket.switch.find(choice, bucket.keys.bucket) for choice in (state.active, state.other))
    if active is None:
        return _IDLE_SECONDS
    if state.phase == "ending":
        return await _end(store, state, active)
    if other is None:
        return _IDLE_SECONDS
    if state.phase == "filling" and not state.total:
        await store.note_missing(other.spec)
    began = monotonic()
    count = await _fill(store, state, [active, other])
    seconds = max(0.0, count / state.rate - (monotonic() - began)) if state.rate else 0.0
    # Writes never stop. If less than a batch was filled in, only memories written since the last step lacked a vector.
    if state.phase == "filling" and count < _limit(state):
        if not state.checked:
            await store.note_missing(other.spec, is_second=True)
            return seconds
        with suppress(Conflict):
            await store.change(["filling"], {"phase": "swapped", "active": json.dumps(state.other)}, most_missing=MOST_MISSING)
            hint = "confirm with `agent-memory reembed confirm`"
            log.warning("all vectors exist; searches change to the other embedding model", model=other.spec.model, hint=hint)
        return seconds
    return seconds if count else _IDLE_SECONDS


def _limit(state: ReembedState) -> int:
    return min(MOST_MISSING, max(1, int(state.rate))) if state.rate else MOST_MISSING


async def _fill(store: ReembedStore, state: ReembedState, targets: Sequence[Runtime]) -> int:
    """Add a batch of missing vectors. Return the number of names processed.

    Raises AgentMemoryError.
    """
    limit = _limit(state)
    count, lacking = await store.pick(limit, [target.spec for target in targets])
    for target, names in zip(targets, lacking, strict=True):
        try:
            if names:
                await _fill_names(store, target, names)
            if count < limit:
                count += sum([await import_name(feature.embed_missing)(target, limit) for feature in FEATURES if feature.embed_missing])
        except AgentMemoryError as error:
            await store.note_error(f"{target.spec.model}: {error.message}")
            raise
    return count


async def _fill_names(store: ReembedStore, target: Runtime, names: Sequence[str]) -> None:
    try:
        await fill_vectors(target, names)
    except ModelAnswerInvalid as error:
        # The model refuses one of the texts, so embed them one by one, and store no vectors for refused texts.
        await store.note_error(f"{target.spec.model}: {error.message}")
        await store.mark_refused(await embed_singly(target.embedder, names, lambda name: fill_vectors(target, [name])))
        await asyncio.sleep(_IDLE_SECONDS)


async def fill_vectors(runtime: Runtime, names: Sequence[str]) -> int:
    """Add vectors from the runtime's model, and keep all others.

    Raises ModelUnavailable or ModelAnswerInvalid.
    """
    jobs, missing_names = await runtime[MemoryStore].index_jobs(names)
    return await runtime[ReembedStore].store_vectors(await embed_jobs(runtime.embedder, jobs), missing_names, runtime.spec)


async def _end(store: ReembedStore, state: ReembedState, active: Runtime) -> float:
    # A process that missed the switch may have written only the other model's vectors.
    if await _fill(store, state, [active]) >= _limit(state):
        return 0.0
    # After a rollback, a process may not have recorded yet that it uses the other model.
    is_early = state.active == state.first and state.now - state.since < _SETTLE_SECONDS
    if is_early or await store.count_behind(state, _SETTLE_SECONDS):
        return _IDLE_SECONDS
    await store.refuse_others(active.spec)
    for name in await former_indexes(active.client, active.keys, active.schemas.values()):
        await drop_index(active.client, name)
    if await store.drop_others(active.schemas, active.spec):
        return 0.0
    await store.end(state, active.spec)
    log.warning("change of the embedding model is over", model=active.spec.model)
    return _IDLE_SECONDS
