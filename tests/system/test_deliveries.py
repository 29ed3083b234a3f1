"""Test that repeated, late and reordered deliveries of a task have one effect (F6)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from agent_memory.features.memories.service import MemoryService
from agent_memory.features.sessions.service import SessionService
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.outbox import Claim
from agent_memory_worker.extraction.extract import extract_facts
from agent_memory_worker.memories.indexing import index_memories
from agent_memory_worker.sessions.promote import promote_session
from agent_memory_worker.sessions.summarize import summarize_session
from agent_memory_worker.task_handlers import Tasks
from tests.support.rig import SCOPE, MakeRig, Rig, gathered, record
from tests.system.conftest import MakeChat
from tests.system.faults.pictures import WORKED, finished, picture, texts

pytestmark = pytest.mark.slow

_SETTINGS = {"DEFAULT_CONTEXT_WINDOW": 256, "EXTRACTION_DEBOUNCE_SECONDS": 0}


async def written(rig: Rig) -> None:
    """Store three sessions, one of them longer than its window, and some memories."""
    for session in ("a", "b", "c"):
        for number in range(4 if session != "c" else 14):
            await rig.append(session, f"In session {session} and year {number} I bought a house with {number} rooms near the harbour")
    await rig.rt[MemoryService].store(SCOPE, [record(f"Fact {number}: Ana owns boat number {number}") for number in range(5)])


async def delivered(rig: Rig, tasks: Tasks, kind: DueKind, claims: Sequence[Claim]) -> None:
    """Deliver these claims once, as docket would."""
    if kind is DueKind.MEMORY:
        await tasks.index_memories([c.member for c in claims], [c.lease for c in claims], [c.attempt for c in claims])
        return
    run = tasks.process_session if kind is DueKind.SESSION else tasks.extract_facts
    for claim in claims:
        await run(claim.member, claim.lease, claim.attempt)


async def state(rig: Rig) -> tuple[Any, Any]:
    return await picture(rig), await texts(rig)


async def calm_state(make_rig: MakeRig, make_chat: MakeChat) -> tuple[Any, Any]:
    async with make_rig(await make_chat(), **_SETTINGS) as rig:
        await written(rig)
        await finished(rig)
        return await state(rig)


async def test_task_delivered_three_times_at_once_has_one_effect(make_rig: MakeRig, make_chat: MakeChat) -> None:
    calm = await calm_state(make_rig, make_chat)
    async with make_rig(await make_chat(), **_SETTINGS) as rig:
        await written(rig)
        tasks = Tasks(rig.rt)
        while claims := {kind: found for kind in WORKED if (found := await rig.claim(kind))}:
            work = [delivered(rig, tasks, kind, found) for kind, found in claims.items() for _ in range(3)]
            random.Random(5).shuffle(work)
            await gathered(work)
        await finished(rig)
        assert await state(rig) == calm


async def test_late_and_reversed_redelivery_has_no_further_effect(make_rig: MakeRig, make_chat: MakeChat) -> None:
    """Some claims are stale because another worker completed the task in the meantime."""
    calm = await calm_state(make_rig, make_chat)
    async with make_rig(await make_chat(), **_SETTINGS) as rig:
        await written(rig)
        tasks = Tasks(rig.rt)
        old: list[tuple[DueKind, list[Claim]]] = []
        for _ in range(6):
            for kind in WORKED:
                if claims := await rig.claim(kind):
                    old.append((kind, claims))
                    await delivered(rig, tasks, kind, claims[::-1])
        for kind, claims in old[::-1]:
            await delivered(rig, tasks, kind, claims[::-1])
        await finished(rig)
        for kind, claims in old[::-1]:
            await delivered(rig, tasks, kind, claims[::-1])
        assert await state(rig) == calm


@pytest.mark.parametrize("copies", [2, 3])
async def test_duplicate_work_without_a_claim_has_one_effect(make_rig: MakeRig, make_chat: MakeChat, copies: int) -> None:
    """Workers ignore leases here, so only the fencing in the scripts prevents duplicates."""
    calm = await calm_state(make_rig, make_chat)
    async with make_rig(await make_chat(), **_SETTINGS) as rig:
        await written(rig)
        sids = list(await rig.marks(DueKind.SESSION))
        assert len(sids) == 3
        for work in (promote_session, extract_facts, summarize_session):
            await gathered(work(rig.rt, sid) for sid in sids[::-1] for _ in range(copies))
        claims = await rig.claim(DueKind.MEMORY)
        await gathered(index_memories(rig.rt, claims) for _ in range(copies))
        await finished(rig)
        assert await state(rig) == calm


async def test_a_session_deleted_during_its_work_stays_deleted(make_rig: MakeRig, make_chat: MakeChat) -> None:
    """The deletion happens between the request to the model and its response."""
    async with make_rig(await make_chat(), **_SETTINGS) as rig:
        await written(rig)
        sid = next(iter(await rig.marks(DueKind.EXTRACTION)))
        journal = await rig.rt[SessionStore].journal(sid, "je", 100)
        assert journal is not None
        await promote_session(rig.rt, sid)

        async def delete() -> None:
            await rig.rt[SessionService].delete(SCOPE, journal.ref.session_id)
            found = [one for one in await rig.stored() if one.session_id == journal.ref.session_id]
            await rig.rt[MemoryService].delete(SCOPE, [one.id for one in found])

        await gathered([extract_facts(rig.rt, sid), summarize_session(rig.rt, sid), delete()])
        # A second deletion of its memories finds all memories that running work may still have written.
        await delete()
        await finished(rig)
        assert not [one for one in await rig.stored() if one.session_id == journal.ref.session_id]
        assert not [key for key in await rig.raw_keys() if sid in key]
