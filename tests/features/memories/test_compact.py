"""Test that compaction merges memories with the same meaning. Callers' ids and data remain."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.features.memories.duplicates.repeats import comparable, is_unedited_extraction, normal_text, plan
from agent_memory.features.memories.duplicates.store import MergeStore
from agent_memory.features.memories.service import fact_memory_id
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.scan import MemoryScan, Selection, StoredMemory
from agent_memory.features.transfer.export import ExportService
from agent_memory.features.transfer.imports import ImportService
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory_client.models import MemoryRecord
from agent_memory_worker.memories import duplicates
from agent_memory_worker.memories.duplicates import compact, compact_changed
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig, record

WHEN = datetime(2025, 3, 1, tzinfo=UTC)


def fact(text: str, session: str = "s1", *, user: str | None = "ada", day: int = 0, **more: Any) -> MemoryRecord:
    """Return a memory like one that a worker extracts from a session."""
    ref = SessionRef(session, None, user)
    made = datetime.now(UTC)
    given: dict[str, Any] = {
        "user_id": user,
        "session_id": session,
        "created_at": WHEN + timedelta(days=day),
        "last_accessed": WHEN,
        "persisted_at": made,
        "updated_at": made,
        "discrete_memory_extracted": "t",
    }
    return record(text, fact_memory_id(ref, text), **{**given, **more})


def found(*records: MemoryRecord) -> list[StoredMemory]:
    return [StoredMemory(f"{place:032x}", 1, one) for place, one in enumerate(records)]


async def everything(rig: Rig) -> dict[str, MemoryRecord]:
    return {one.id: one for one in await rig.stored()}


async def test_compaction_reduces_three_groups_of_four_copies_to_three_memories(rig: Rig) -> None:
    texts = ["Ada likes green tea.", "Ada lives in Turin", "Ada plays the violin"]
    await rig.remember(*(record(text, f"{text}-{copy}", user_id="ada") for text in texts for copy in range(4)), record("Ada sings"))
    assert await compact(rig.rt, SCOPE, Selection()) == 9
    assert sorted(one.text for one in await rig.stored()) == sorted([*texts, "Ada sings"])
    assert await compact(rig.rt, SCOPE, Selection()) == 0


async def test_compaction_compares_more_than_a_thousand_memories(rig: Rig) -> None:
    records = [record(f"Fact number {n % 700} of Ada", f"m{n}", created_at=WHEN + timedelta(seconds=n)) for n in range(1400)]
    await rig.rt[MemoryStore].write(SCOPE, records)
    assert await compact(rig.rt, SCOPE, Selection()) == 700
    assert set(await everything(rig)) == {f"m{n}" for n in range(700)}, "the oldest of each stays"


async def test_merge_unites_evidence_tags_and_counts(rig: Rig) -> None:
    read = datetime(2025, 5, 1, tzinfo=UTC)
    first = fact("Ada likes tea", "s1", extracted_from=["m1"], topics=["tea"], access_count=2, metadata={"a": 1})
    second = fact("ada  likes TEA.", "s2", day=1, extracted_from=["m2", "m1"], topics=["drinks"], entities=["Ada"], access_count=3,
                  last_accessed=read, metadata={"a": 2, "b": 3})  # fmt: skip
    await rig.remember(first, second)
    assert await compact(rig.rt, SCOPE, Selection()) == 1
    (one,) = await rig.stored()
    assert (one.id, one.text, one.session_id, one.created_at) == (first.id, "Ada likes tea", "s1", first.created_at)
    assert (one.extracted_from, one.topics, one.entities) == (["m1", "m2"], ["tea", "drinks"], ["Ada"])
    assert (one.access_count, one.last_accessed, one.metadata) == (5, read, {"a": 1, "b": 3})
    hits = await rig.rt[MemoryScan].load_newest(SCOPE, Selection(), 10)
    assert [hit.record.id for hit in hits[1]] == [first.id]


async def test_ids_known_to_callers_survive_compaction(rig: Rig) -> None:
    worker = fact("Ada likes tea")
    known = record("Ada likes tea", "mine", user_id="ada", created_at=WHEN + timedelta(days=9), topics=["tea"])
    other = record("Ada likes tea", "mine too", user_id="ada", topics=["drinks"])
    edited = fact("Ada likes cake").model_copy(update={"updated_at": datetime.now(UTC) + timedelta(days=1)})
    await rig.remember(worker, known, other, edited, fact("Ada likes cake", "s2", day=3))
    assert await compact(rig.rt, SCOPE, Selection()) == 2
    assert set(await everything(rig)) == {"mine", "mine too", edited.id}


async def test_pins_survive_compaction(rig: Rig) -> None:
    worker = fact("Ada likes tea")
    pinned = fact("Ada likes tea", "s2", day=5, pinned=True)
    await rig.remember(worker, pinned)
    await compact(rig.rt, SCOPE, Selection())
    (one,) = await rig.stored()
    assert (one.id, one.pinned) == (pinned.id, True)


async def test_memories_of_other_users_namespaces_types_or_dates_are_not_duplicates(rig: Rig) -> None:
    records = [
        record("It rained", "1"),
        record("It rained", "2", user_id="ada"),
        record("It rained", "3", user_id="bob"),
        record("It rained", "4", user_id="ada", namespace="n"),
        record("It rained", "5", memory_type="episodic"),
        record("It rained", "6", memory_type="episodic", event_date=WHEN),
        record("It rained", "7", memory_type="episodic", event_date=WHEN + timedelta(days=1)),
        record("It rained", "8", memory_type="message", session_id="s"),
        record("It rained", "9", memory_type="message", session_id="s"),
    ]
    await rig.remember(*records)
    assert await compact(rig.rt, SCOPE, Selection()) == 0
    assert len(await rig.stored()) == len(records)


async def test_compaction_embeds_nothing_again(make_rig: MakeRig) -> None:
    async with make_rig() as rig:
        await rig.remember(*(record("Ada likes tea", f"m{n}") for n in range(3)), *(fact("Ada likes cake", f"s{n}") for n in range(3)))
        rig.embedder.away = True
        assert await compact(rig.rt, SCOPE, Selection()) == 4
        assert await rig.marks(DueKind.MEMORY) == {}
        vectors = await rig.rt[MemoryScan].load_vectors(
            [one.mid for page in [(await rig.rt[MemoryScan].load_newest(SCOPE, Selection(), 9))[1]] for one in page]
        )
        assert len(vectors) == 2, "what stays keeps its vector, what goes loses it"


async def test_merge_is_skipped_if_a_memory_changed_meanwhile(rig: Rig) -> None:
    await rig.remember(record("Ada likes tea", "a", created_at=WHEN), record("Ada likes tea", "b"))
    _, both = await rig.rt[MemoryScan].load_newest(SCOPE, Selection(), 10)
    (merge,) = plan(both)
    await rig.rt[MemoryStore].write(SCOPE, [record("Ada likes tea", "b", pinned=True)])
    assert not await rig.rt[MergeStore].merge_memories(SCOPE, merge.stays, merge.merged, merge.repeats)
    assert set(await everything(rig)) == {"a", "b"}


async def test_merged_fact_is_not_restored_by_the_next_extraction(rig: Rig) -> None:
    second = fact("Ada likes tea", "s2", day=1)
    await rig.remember(fact("Ada likes tea"), second)
    await compact(rig.rt, SCOPE, Selection())
    assert await rig.rt[MemoryStore].write(SCOPE, [second], background=True) == ["buried"]


async def test_periodic_compaction_reads_only_changed_memories(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await rig.remember(*(record(f"Fact {n} of Ada", f"m{n}") for n in range(20)), record("Ada likes tea", "old"))
    assert await compact_changed(rig.rt) == 0
    looked: list[str] = []
    load = rig.rt[MemoryScan].load_current

    async def watched(scope: Any, mids: Any) -> Any:
        looked.extend(mids)
        return await load(scope, mids)

    monkeypatch.setattr(type(rig.rt[MemoryScan]), "load_current", lambda _, scope, mids: watched(scope, mids))
    assert await compact_changed(rig.rt) == 0
    assert looked == []
    await rig.remember(record("Ada likes tea", "new"))
    assert await compact_changed(rig.rt) == 1
    assert len(set(looked)) == 2, "the new one and the one that it repeats"
    assert "old" in await everything(rig)


async def test_compaction_is_limited_to_its_selection(rig: Rig) -> None:
    await rig.remember(*(record("Ada likes tea", f"{name}{n}", namespace=name) for name in "ab" for n in range(2)))
    assert await compact(rig.rt, SCOPE, Selection.of("a", None)) == 1
    assert {one.namespace for one in await rig.stored()} == {"a", "b"}
    assert len(await rig.stored()) == 3


SIMILAR = [
    "Ada is learning to play the violin in Turin",
    "In Turin Ada is learning to play violin",
    "Ada is learning to play the viola in Turin",
]


async def test_similar_facts_are_merged_if_a_model_confirms(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    async with make_rig(chat, COMPACTION_SIMILARITY=0.8) as rig:
        await rig.remember(*(fact(text, f"s{n}", day=n, extracted_from=[f"e{n}"]) for n, text in enumerate(SIMILAR)))
        assert await compact(rig.rt, SCOPE, Selection()) == 1
        stayed = {one.text: one for one in await rig.stored()}
        assert set(stayed) == {SIMILAR[0], SIMILAR[2]}
        assert stayed[SIMILAR[0]].extracted_from == ["e0", "e1"]
        assert lookalike.calls["chat"] >= 1
        asked = lookalike.calls["chat"]
        await compact(rig.rt, SCOPE, Selection())
        assert lookalike.calls["chat"] <= asked + 1, "the pair with the memory that changed is a new question"
        asked = lookalike.calls["chat"]
        await compact(rig.rt, SCOPE, Selection())
        assert lookalike.calls["chat"] == asked, "what was told apart is not asked again"


async def settle(rig: Rig) -> None:
    """Run all pending work, so that the tenant is idle."""
    for kind in (DueKind.MEMORY, DueKind.FOLLOW):
        await rig.make_due(kind)
    await rig.work()


async def test_periodic_compaction_asks_a_model_only_for_idle_tenants_and_retries_outages(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike
) -> None:
    async with make_rig(chat, COMPACTION_SIMILARITY=0.8) as rig:
        await rig.remember(
            *(fact(text, f"s{n}", day=n) for n, text in enumerate(SIMILAR)), *(record("Ada sings", f"m{n}") for n in range(2))
        )
        assert await compact_changed(rig.rt) == 1, "the same words need no model"
        assert lookalike.calls["chat"] == 0, "the tenant is at work"
        await settle(rig)
        lookalike.set_fault("503")
        assert await compact_changed(rig.rt, quiet_seconds=0) == 0
        lookalike.set_fault(None)
        assert await compact_changed(rig.rt, quiet_seconds=0) == 1
        asked = lookalike.calls["chat"]
        assert {one.text for one in await rig.stored()} == {SIMILAR[0], SIMILAR[2], "Ada sings"}
        await settle(rig)
        await compact_changed(rig.rt, quiet_seconds=0)
        assert lookalike.calls["chat"] <= asked + 1, "the pair with the memory that changed is a new question"


async def test_imported_facts_are_compared_although_they_are_older_than_the_last_pass(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duplicates, "_OVERLAP_MICROS", 0)
    async with make_rig(chat, COMPACTION_SIMILARITY=0.8) as rig:
        twins = [record("It rained", f"rain {n}", user_id="ada", event_date=WHEN + timedelta(days=n)) for n in (0, 1)]
        await rig.remember(fact(SIMILAR[1], day=1), record("It rained", "rain 2", user_id="ada", event_date=WHEN + timedelta(days=1)))
        lines = b"".join([piece async for piece in (await rig.rt[ExportService].begin(SCOPE, None, "ada"))[1]])
        await rig.rt[MemoryStore].drop_records(SCOPE, [(one, None) for one in await rig.stored()])
        await rig.remember(fact(SIMILAR[0], "s0"), *twins)
        await settle(rig)
        assert await compact_changed(rig.rt, quiet_seconds=0) == 0
        assert (await rig.rt[ImportService].run(SCOPE, None, "ada", lines)).imported == {"memory": 2}
        await settle(rig)
        assert await compact_changed(rig.rt, quiet_seconds=0) == 2
        assert {one.id for one in await rig.stored()} == {fact(SIMILAR[0], "s0").id, "rain 0", "rain 1"}
        assert not [key for key in await rig.raw_keys() if key.startswith("unmerged:")]


async def test_similar_facts_are_compared_in_batches_that_fit_the_context(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike
) -> None:
    """A pair that does not fit even on its own stays unmerged, but does not delay other pairs."""
    lookalike.context.tokens = 1000
    ports = ("Turin", "Porto", "Lisbon", "Bergen", "Oslo", "Rome", "Cremona", "Vienna", "Prague", "Bern")
    at_length = "with Anna, whom she has known since they both went to school in the old town, and whose brother repairs them " * 2
    async with make_rig(chat, COMPACTION_SIMILARITY=0.8) as rig:
        for text in (f"Ada is learning to play the violin in {port} {at_length}" for port in ports):
            await rig.remember(fact(text), fact(text.replace("Ada is learning to play the", "Learning to play the is Ada")))
        long = "Ada likes tea and cake and everything else that is served at the harbour " * 100
        await rig.remember(fact(long), fact(f"{long} Ada likes tea"))
        gone = await compact(rig.rt, SCOPE, Selection())
        assert gone >= len(ports)
        assert lookalike.calls["chat"] > 2
        sent = [str(body["messages"]) for body in lookalike.bodies("chat")]
        assert len(sent) == len(set(sent))
        assert long.strip() in {one.text.strip() for one in await rig.stored()}


async def test_similar_facts_stay_unmerged_during_a_model_outage(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    async with make_rig(chat, COMPACTION_SIMILARITY=0.8) as rig:
        await rig.remember(*(fact(text, f"s{n}") for n, text in enumerate(SIMILAR)), *(record("Ada sings", f"m{n}") for n in range(2)))
        lookalike.set_fault("503")
        assert await compact(rig.rt, SCOPE, Selection()) == 1, "exact repeats need no model"
        assert len(await rig.stored()) == 4


async def test_without_a_model_or_setting_only_exact_duplicates_are_merged(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike
) -> None:
    for options in ({"chat": None}, {"chat": chat, "COMPACT_SEMANTIC_DUPLICATES": False}):
        async with make_rig(COMPACTION_SIMILARITY=0.8, **options) as rig:
            await rig.remember(*(fact(text, f"s{n}") for n, text in enumerate(SIMILAR)))
            assert await compact(rig.rt, SCOPE, Selection()) == 0
    assert lookalike.calls["chat"] == 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (fact("The code is 1234"), fact("The code is 1243", "s2"), False),
        (fact("Ada likes tea"), fact("Ada does not like tea", "s2"), False),
        (fact("Ada likes tea"), fact("Ada doesn’t like tea", "s2"), False),
        (fact("Ada likes tea"), fact("Ada enjoys tea", "s2"), True),
        (fact("Ada likes tea"), fact("Ada enjoys tea", "s2", pinned=True), False),
        (fact("Ada likes tea"), fact("Ada enjoys tea", "s2", user="bob"), False),
        (fact("Ada likes tea"), fact("Ada enjoys tea", "s2", memory_type="episodic"), False),
        (fact("Ada likes tea"), record("Ada enjoys tea", user_id="ada"), False),
        (fact("A", memory_type="episodic", event_date=WHEN), fact("B", "s2", memory_type="episodic"), False),
        (fact("A", event_date=WHEN), fact("B", "s2"), True),
    ],
)
def test_only_comparable_pairs_are_sent_to_a_model(one: MemoryRecord, other: MemoryRecord, same: bool) -> None:
    assert comparable(one, other) is same


def test_normal_text_ignores_case_spaces_and_quotes_but_not_meaningful_signs() -> None:
    assert len({normal_text(text) for text in ("Ada likes tea", "ada  LIKES\ntea.", "“Ada likes tea!”", "Ada likes tea…")}) == 1
    assert len({normal_text(text) for text in ("Ada likes C", "Ada likes C++", "Ada likes C?", "Ada like c", "-5", "5")}) == 6


_TEXTS = st.sampled_from(["Ada likes tea", "ada likes tea.", "Ada likes cake"])


@st.composite
def _memories(draw: st.DrawFn) -> list[MemoryRecord]:
    made: dict[str, MemoryRecord] = {}
    for number in range(draw(st.integers(0, 8))):
        more = {
            "pinned": draw(st.booleans()),
            "topics": draw(st.lists(st.sampled_from("abc"), unique=True, max_size=2)) or None,
            "extracted_from": [f"e{number}"],
            "access_count": draw(st.integers(0, 5)),
            "metadata": draw(st.sampled_from([{}, {"k": "v"}])),
            "created_at": WHEN + timedelta(days=draw(st.integers(0, 3))),
        }
        text = draw(_TEXTS)
        one = fact(text, f"s{number}", **more) if draw(st.booleans()) else record(text, f"id{number}", user_id="ada", **more)
        made[one.id] = one
    return list(made.values())


@given(_memories())
def test_merge_plan_loses_no_pin_known_id_evidence_or_count(records: list[MemoryRecord]) -> None:
    kept = {one.id: one for one in records}
    groups: dict[str, list[StoredMemory]] = {}
    for one in found(*records):
        groups.setdefault(normal_text(one.record.text), []).append(one)
    for merge in (merge for group in groups.values() for merge in plan(group)):
        kept[merge.stays.record.id] = merge.merged
        for repeat in merge.repeats:
            gone = kept.pop(repeat.record.id)
            assert not gone.pinned or merge.merged.pinned
            stays = merge.stays.record
            assert is_unedited_extraction(gone) or (set(gone.topics or ()), gone.metadata) == (set(stays.topics or ()), stays.metadata)
    assert sum(one.access_count for one in kept.values()) == sum(one.access_count for one in records)
    assert {e for one in kept.values() for e in one.extracted_from or ()} == {e for one in records for e in one.extracted_from or ()}
    for one in kept.values():
        assert one.text == next(old.text for old in records if old.id == one.id)
