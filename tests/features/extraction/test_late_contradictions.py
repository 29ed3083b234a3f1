"""Test that the late pass finds contradictions between facts that were never compared.

It runs while the tenant is idle, and users can undo its changes.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.commit import CLIENT_STATEMENT, MemoryCommits, Update
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.scan import MemoryScan, Selection
from agent_memory.features.privacy.purge import PurgeService
from agent_memory.features.transfer.export import ExportService
from agent_memory.features.transfer.imports import ImportService
from agent_memory.features.transfer.sources.lines import Placement, fact_line
from agent_memory.features.transfer.sources.model import Fact
from agent_memory.foundation.core.errors import Conflict
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory.foundation.storage.job_times import JobTimes
from agent_memory_client.models import Change, MemoryRecord, PurgeRequest
from agent_memory_worker.extraction import contradictions
from agent_memory_worker.extraction.contradictions import find_contradictions
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig, record

WHEN = datetime(2025, 3, 1, tzinfo=UTC)
TURIN, OSLO = "Ada lives in Turin", "Ada lives in Oslo"
# An unusable answer is requested once more.
TRIES_PER_CALL = 2


def said(text: str, day: int, memory_id: str | None = None, **more: Any) -> MemoryRecord:
    return record(text, memory_id, created_at=WHEN + timedelta(days=day), **{"user_id": "ada", **more})


async def settled(rig: Rig, *records: MemoryRecord) -> None:
    """Store memories and process them."""
    for memory in records:
        await rig.remember(memory)
    await rig.work()


async def look(rig: Rig) -> int:
    await rig.make_due(DueKind.FOLLOW)
    await rig.work()
    return await find_contradictions(rig.rt, quiet_seconds=0)


async def current(rig: Rig) -> set[str]:
    return {memory.text for memory in await rig.stored()}


async def changes(rig: Rig, state: str) -> list[Change]:
    return (await rig.rt[HistoryService].read_changes(SCOPE, {"kd": "supersede", "st": state}, None, 0, 10)).changes


async def move_in(rig: Rig, facts: dict[str, int]) -> dict[str, int]:
    """Import facts from another system, each with a day, and return the import counts."""
    place = Placement("mem0", "ada", None, None)
    lines = [fact_line(Fact(text, text, created_at=WHEN + timedelta(days=day)), place, WHEN) for text, day in facts.items()]
    body = "\n".join(json.dumps(line) for line in [place.header, *lines])
    report = await rig.rt[ImportService].run(SCOPE, None, "ada", body.encode(), source="mem0")
    assert report.problems == []
    return report.imported


@pytest.fixture
def ends(lookalike: Lookalike) -> Lookalike:
    """Script the model to decide that the Oslo fact supersedes the Turin fact."""
    lookalike.scripted.decisions[OSLO] = ["SUPERSEDE", TURIN]
    return lookalike


@pytest.mark.parametrize("order", [(TURIN, OSLO), (OSLO, TURIN)], ids=["newer last", "older last"])
async def test_later_statement_supersedes_an_earlier_contradicting_one(
    make_rig: MakeRig, chat: OpenAIChat, ends: Lookalike, order: tuple[str, str]
) -> None:
    async with make_rig(chat) as rig:
        days = {TURIN: 0, OSLO: 9}
        await settled(rig, *(said(text, days[text]) for text in order), said("Ada plays the violin", 3))
        assert await look(rig) == 1
        await rig.work()
        assert await current(rig) == {OSLO, "Ada plays the violin"}
        (change,) = await changes(rig, "applied")
        assert change.actor == "contradictions"
        asked = ends.calls["chat"]
        assert await look(rig) == 0
        await rig.rt[HistoryService].undo_by_id(SCOPE, change.id)
        assert await current(rig) == {TURIN, OSLO, "Ada plays the violin"}
        assert await look(rig) == 0
        assert ends.calls["chat"] == asked, "what was judged and undone is not asked about again"
        assert await current(rig) == {TURIN, OSLO, "Ada plays the violin"}


@pytest.mark.parametrize("model", [True, False], ids=["with a model", "without"])
async def test_later_value_of_a_slot_supersedes_the_earlier_one(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike, model: bool
) -> None:
    async with make_rig(chat if model else None) as rig:
        await settled(rig, said(TURIN, 0, slot="home"), said(OSLO, 9), said("Ada plays the violin", 3))
        (oslo,) = await rig.rt[MemoryStore].find(SCOPE, [OSLO])
        assert oslo is not None
        await rig.rt[MemoryCommits].commit(SCOPE, [Update(oslo, oslo.record.model_copy(update={"slot": "home"}))], CLIENT_STATEMENT)
        assert await current(rig) == {TURIN, OSLO, "Ada plays the violin"}
        assert await look(rig) == 1
        await rig.work()
        assert await current(rig) == {OSLO, "Ada plays the violin"}


async def test_similarity_alone_supersedes_nothing(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    lookalike.scripted.silent = True
    async with make_rig(chat) as rig:
        await settled(rig, said(TURIN, 0), said(OSLO, 9))
        assert await look(rig) == 0
        assert lookalike.calls["chat"] == 1
    for without in (make_rig(None), make_rig(chat, ENABLE_DISCRETE_MEMORY_EXTRACTION=False)):
        async with without as rig:
            await settled(rig, said(TURIN, 0), said(OSLO, 9))
            assert await look(rig) == 0
            assert await current(rig) == {TURIN, OSLO}
    assert lookalike.calls["chat"] == 1


async def test_imported_facts_are_compared_although_they_are_older_than_the_last_pass(
    make_rig: MakeRig, chat: OpenAIChat, ends: Lookalike
) -> None:
    async with make_rig(chat) as rig:
        await settled(rig, said("Ada plays the violin", 3))
        assert await look(rig) == 0
        assert await move_in(rig, {TURIN: 0, OSLO: 9}) == {"memory": 2}
        assert await look(rig) == 1
        await rig.work()
        assert await current(rig) == {OSLO, "Ada plays the violin"}
        asked, keys = ends.calls["chat"], await rig.raw_keys()
        assert await move_in(rig, {TURIN: 0, OSLO: 9}) == {}
        assert await rig.raw_keys() == keys, "a repeated import changes nothing"
        assert await look(rig) == 0
        assert ends.calls["chat"] == asked
        assert not [key for key in await rig.raw_keys() if key.startswith("uncompared:")]


@pytest.mark.parametrize("own", ["Ada plays the violin", TURIN])
async def test_undo_of_an_import_takes_back_what_the_pass_decided(make_rig: MakeRig, chat: OpenAIChat, ends: Lookalike, own: str) -> None:
    async with make_rig(chat) as rig:
        await settled(rig, said(own, 0, source_class="tool"))
        imported = {text: day for text, day in {TURIN: 0, OSLO: 9}.items() if text != own}
        assert await move_in(rig, imported) == {"memory": len(imported)}
        assert await look(rig) == 1
        assert await current(rig) == {OSLO, own} - {TURIN}
        await rig.rt[PurgeService].order(SCOPE, PurgeRequest(import_source="mem0", unchanged=True), None, None, dry_run=False)
        await rig.work(DueKind.ORDER)
        assert await current(rig) == {own}
        lines = b"".join([piece async for piece in (await rig.rt[ExportService].begin(SCOPE, None, "ada"))[1]]).splitlines()
        assert [line for line in lines if b'"kind":"memory"' in line and own.encode() not in line] == []


async def test_fact_imported_during_a_pass_is_compared_once_it_is_embedded(
    make_rig: MakeRig, chat: OpenAIChat, ends: Lookalike, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_rig(chat) as rig:
        await settled(rig, said(TURIN, 0, source_class="import"))
        assert await look(rig) == 0
        load = MemoryScan.load_changed

        async def before_an_import(self: MemoryScan, *args: Any) -> Any:
            await move_in(rig, {OSLO: 9})
            return await load(self, *args)

        with monkeypatch.context() as patched:
            patched.setattr(MemoryScan, "load_changed", before_an_import)
            assert await look(rig) == 0
        assert await look(rig) == 1


@pytest.mark.parametrize("why", ["setting", "pinned", "edited"])
async def test_supersession_is_only_proposed_by_setting_or_for_pinned_or_edited_memories(
    make_rig: MakeRig, chat: OpenAIChat, ends: Lookalike, why: str
) -> None:
    async with make_rig(chat, REVIEW_SUPERSESSIONS=why == "setting") as rig:
        await settled(rig, said("Ada lives in Tur" if why == "edited" else TURIN, 0, "home", pinned=why == "pinned"), said(OSLO, 9, "oslo"))
        if why == "edited":
            (home,) = await rig.rt[MemoryStore].find(SCOPE, ["home"])
            assert home is not None
            await rig.rt[MemoryCommits].commit(
                SCOPE, [Update(home, home.record.model_copy(update={"text": TURIN}), edited=True)], CLIENT_STATEMENT
            )
            (oslo,) = await rig.rt[MemoryStore].find(SCOPE, ["oslo"])
            assert oslo is not None
            later = oslo.record.model_copy(update={"created_at": datetime.now(UTC) + timedelta(hours=1)})
            await rig.rt[MemoryStore].delete_records(SCOPE, [oslo.record])
            await settled(rig, later.model_copy(update={"id": "oslo-2"}))
        assert await look(rig) == 1
        assert await current(rig) == {TURIN, OSLO}
        (proposal,) = await changes(rig, "proposed")
        assert await look(rig) == 0
        await rig.rt[HistoryService].approve_proposal(SCOPE, proposal.id)
        await rig.work()
        assert TURIN not in await current(rig) or why == "edited"
        await rig.rt[HistoryService].undo_by_id(SCOPE, proposal.id)
        assert await current(rig) == {TURIN, OSLO}


async def test_a_rejected_proposal_is_not_made_again(make_rig: MakeRig, chat: OpenAIChat, ends: Lookalike) -> None:
    async with make_rig(chat, REVIEW_SUPERSESSIONS=True) as rig:
        await settled(rig, said(TURIN, 0), said(OSLO, 9))
        assert await look(rig) == 1
        await rig.rt[HistoryService].reject_proposal(SCOPE, (await changes(rig, "proposed"))[0].id)
        await forget_what_was_judged(rig)
        assert await look(rig) == 0
        assert await changes(rig, "proposed") == []


async def forget_what_was_judged(rig: Rig) -> None:
    """Simulate a worker that died before it stored the compared pairs and the cursor."""
    for key in await rig.raw_keys():
        if key.startswith("apart:"):
            await rig.rt.client.delete(rig.keys.root + key)
    await rig.rt[JobTimes].note_looked(f"contradictions:{SCOPE.tenant}", 0)


async def test_contradiction_pass_skips_a_busy_tenant(make_rig: MakeRig, chat: OpenAIChat, ends: Lookalike) -> None:
    async with make_rig(chat) as rig:
        await settled(rig, said(TURIN, 0), said(OSLO, 9))
        assert await find_contradictions(rig.rt, quiet_seconds=3600) == 0, "it wrote a moment ago"
        await rig.append("talk", "Hello there", user_id="ada")
        assert await find_contradictions(rig.rt, quiet_seconds=0) == 0, "a session waits"
        assert ends.calls["chat"] == 0
        assert await current(rig) >= {TURIN, OSLO}


@pytest.mark.parametrize("other", [{"user_id": "bob"}, {"namespace": "n"}, {"agent_id": "a"}], ids=str)
async def test_facts_of_different_owners_are_never_compared(
    make_rig: MakeRig, chat: OpenAIChat, ends: Lookalike, other: dict[str, str]
) -> None:
    async with make_rig(chat) as rig:
        await settled(rig, said(TURIN, 0), said(OSLO, 9, **other))
        assert await look(rig) == 0
        assert ends.calls["chat"] == 0


async def test_contradiction_pass_retries_after_a_model_outage(make_rig: MakeRig, chat: OpenAIChat, ends: Lookalike) -> None:
    async with make_rig(chat) as rig:
        await settled(rig, said(TURIN, 0), said(OSLO, 9))
        ends.set_fault("503")
        assert await look(rig) == 0
        ends.set_fault(None)
        assert await look(rig) == 1


async def test_contradiction_pass_calls_no_model_after_the_budget_is_spent(make_rig: MakeRig, chat: OpenAIChat, ends: Lookalike) -> None:
    async with make_rig(chat, LIMIT_MODEL_TOKENS_PER_DAY=1) as rig:
        await settled(rig, said(TURIN, 0), said(OSLO, 9))
        assert await look(rig) == 1, "the call that spends the last of it is finished"
        asked = ends.calls["chat"]
        await settled(rig, said("Ada lives in Bergen", 12))
        assert await look(rig) == 0
        assert ends.calls["chat"] == asked


async def test_contradiction_pass_is_repeated_after_a_crash(
    make_rig: MakeRig, chat: OpenAIChat, ends: Lookalike, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    async def die(*_: Any, **__: Any) -> None:
        raise Killed

    async with make_rig(chat) as rig:
        await settled(rig, said(TURIN, 0), said(OSLO, 9))
        with monkeypatch.context() as patched:
            patched.setattr(MemoryCommits, "commit", die)
            with pytest.raises(Killed):
                await look(rig)
        assert await current(rig) == {TURIN, OSLO}
        assert await look(rig) == 1
        await rig.work()
        await forget_what_was_judged(rig)
        assert await look(rig) == 0
        assert len(await changes(rig, "applied")) == 1


async def test_memory_erased_before_the_write_stays_erased(
    make_rig: MakeRig, chat: OpenAIChat, ends: Lookalike, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_rig(chat) as rig:
        await settled(rig, said(TURIN, 0), said(OSLO, 9))
        commit, ids = MemoryCommits.commit, [memory.id for memory in await rig.stored()]

        async def after_deletion(self: MemoryCommits, *args: Any, **options: Any) -> Any:
            memories = await rig.rt[MemoryStore].find(SCOPE, ids)
            await rig.rt[MemoryStore].delete_records(SCOPE, [memory.record for memory in memories if memory is not None])
            return await commit(self, *args, **options)

        with monkeypatch.context() as patched:
            patched.setattr(MemoryCommits, "commit", after_deletion)
            assert await look(rig) == 0
        assert await current(rig) == set()


async def test_contradiction_pass_compares_a_bounded_number_of_batches(make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contradictions, "_BATCHES_PER_PASS", 2)
    async with make_rig(None) as rig:
        await rig.remember(*(said(f"Fact number {n} of Ada", n, user_id=f"user-{n}") for n in range(70)))
        await move_in(rig, {f"Bob plays instrument {n}": n for n in range(70)})
        cursors, waiting = [0], [70]
        for _ in range(3):
            await look(rig)
            cursors.append(await rig.rt[JobTimes].looked_until(f"contradictions:{SCOPE.tenant}"))
            waiting.append(await rig.rt.client.scard(rig.keys.uncompared(SCOPE.tenant)))
        assert cursors[0] < cursors[1] < cursors[2] <= cursors[3]
        assert waiting == [70, 6, 0, 0]
        assert (await rig.rt[MemoryScan].load_changed(SCOPE, Selection(), cursors[3], 1))[0] == []


@pytest.mark.parametrize(
    ("older", "newer"), [("client", "user"), ("user", "assistant"), ("user", "inference"), ("assistant", "tool")], ids=lambda name: name
)
async def test_less_trusted_statement_only_proposes_a_supersession(
    make_rig: MakeRig, chat: OpenAIChat, ends: Lookalike, older: str, newer: str
) -> None:
    async with make_rig(chat) as rig:
        await settled(rig, said(TURIN, 0, source_class=older), said(OSLO, 9, source_class=newer))
        assert await look(rig) == 1
        assert await current(rig) == {TURIN, OSLO}
        assert len(await changes(rig, "proposed")) == 1


@pytest.mark.parametrize("name", ["home", "oslo"])
async def test_proposal_is_deleted_with_either_of_its_memories(make_rig: MakeRig, chat: OpenAIChat, ends: Lookalike, name: str) -> None:
    async with make_rig(chat, REVIEW_SUPERSESSIONS=True) as rig:
        await settled(rig, said(TURIN, 0, "home"), said(OSLO, 9, "oslo"))
        assert await look(rig) == 1
        (memory,) = await rig.rt[MemoryStore].find(SCOPE, [name])
        assert memory is not None
        await rig.rt[MemoryStore].delete_records(SCOPE, [memory.record])
        assert await changes(rig, "proposed") == []
        assert not [key for key in await rig.raw_keys() if key.startswith("ch:")]


async def test_proposal_is_a_conflict_if_a_memory_changed_meanwhile(make_rig: MakeRig, chat: OpenAIChat, ends: Lookalike) -> None:
    async with make_rig(chat, REVIEW_SUPERSESSIONS=True) as rig:
        await settled(rig, said(TURIN, 0, "home"), said(OSLO, 9, "oslo"))
        assert await look(rig) == 1
        (proposal,) = await changes(rig, "proposed")
        (oslo,) = await rig.rt[MemoryStore].find(SCOPE, ["oslo"])
        assert oslo is not None
        await rig.rt[MemoryCommits].commit(SCOPE, [Update(oslo, oslo.record.model_copy(update={"topics": ["home"]}))], CLIENT_STATEMENT)
        with pytest.raises(Conflict):
            await rig.rt[HistoryService].approve_proposal(SCOPE, proposal.id)
        assert await current(rig) == {TURIN, OSLO}


async def test_slot_contradictions_are_resolved_during_a_model_outage(make_rig: MakeRig, chat: OpenAIChat, ends: Lookalike) -> None:
    async with make_rig(chat) as rig:
        await settled(rig, said("Ada works in Rome", 0, slot="work"), said("Ada works in Bonn", 9), said(TURIN, 0), said(OSLO, 9))
        (bonn,) = await rig.rt[MemoryStore].find(SCOPE, ["Ada works in Bonn"])
        assert bonn is not None
        await rig.rt[MemoryCommits].commit(SCOPE, [Update(bonn, bonn.record.model_copy(update={"slot": "work"}))], CLIENT_STATEMENT)
        ends.set_fault("503")
        assert await look(rig) == 1
        ends.set_fault(None)
        await rig.work()
        assert await current(rig) == {"Ada works in Bonn", TURIN, OSLO}
        assert await look(rig) == 1
        assert await current(rig) == {"Ada works in Bonn", OSLO}


async def test_contradiction_pass_stops_when_its_tenant_becomes_active(
    make_rig: MakeRig, chat: OpenAIChat, ends: Lookalike, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_rig(chat) as rig:
        await settled(rig, said(TURIN, 0), said(OSLO, 9))
        load = MemoryScan.load_changed

        async def before_a_message(self: MemoryScan, *args: Any) -> Any:
            await rig.append("talk", "Hello there", user_id="ada")
            return await load(self, *args)

        with monkeypatch.context() as patched:
            patched.setattr(MemoryScan, "load_changed", before_a_message)
            assert await look(rig) == 0
        assert ends.calls["chat"] == 0
        assert await rig.rt[JobTimes].looked_until(f"contradictions:{SCOPE.tenant}") == 0
        await rig.work(DueKind.SESSION)
        await rig.make_due(DueKind.EXTRACTION)
        assert await look(rig) == 1


async def test_contradiction_pass_makes_a_bounded_number_of_model_calls(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    async with make_rig(chat) as rig:
        cities = ["Turin", "Oslo", "Bergen", "Rome", "Bonn", "Lima", "Quito", "Paris", "Prague", "Vienna", "Delhi", "Cairo"]
        await settled(rig, *(said(f"Ada lives in {city}", day) for day, city in enumerate(cities)))
        lookalike.set_fault("garbage")
        asked = 0
        for _ in range(10):
            calls = lookalike.calls["chat"]
            await look(rig)
            asked = lookalike.calls["chat"] - calls
            assert asked <= 8 * TRIES_PER_CALL
            if not asked:
                break
        assert asked == 0, "what a model cannot answer is passed over"
        assert len(await current(rig)) == len(cities)
