"""Test defects 5, 6, 10, 36 and 40 in long-term memory.

A bad record made its batch fail, and merges lost ids and pins. Compaction missed most copies and
embedded everything again. Creating records cost a model call for each one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from ulid import ULID

from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService, fact_memory_id
from agent_memory.features.memories.upkeep import scan
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.foundation.core.errors import ModelAnswerInvalid
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.base import Vectors
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory_client.models import CreateMemoryRecordRequest, ExtractedMemoryRecord, MemoryRecord, SearchModeEnum, SearchRequest
from agent_memory_worker.memories.duplicates import compact, compact_changed
from tests.support.commands import commands_of
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig, record

WHEN = datetime(2025, 3, 1, tzinfo=UTC)


async def create(rig: Rig, *records: MemoryRecord, dedupe: bool = True) -> None:
    memories = [ExtractedMemoryRecord.model_validate(one.model_dump(exclude_unset=True)) for one in records]
    await rig.rt[MemoryService].create(SCOPE, CreateMemoryRecordRequest(memories=memories, deduplicate=dedupe))


def fact(text: str, session: str, **more: Any) -> MemoryRecord:
    """Return a memory like the one a worker creates for a fact."""
    made = datetime.now(UTC)
    given = {"user_id": "ada", "session_id": session, "created_at": WHEN, "persisted_at": made, "updated_at": made}
    return record(text, fact_memory_id(SessionRef(session, None, "ada"), text), **{**given, **more})


async def found_by(rig: Rig, mode: SearchModeEnum, text: str) -> set[str]:
    answer = await rig.rt[SearchService].search(SCOPE, SearchRequest(text=text, search_mode=mode, limit=50, recency_boost=False))
    return {one.id for one in answer.memories}


async def embedding_calls(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that collects the number of texts in each embedder call."""
    calls: list[int] = []
    embed = rig.embedder.embed

    async def counted(texts: Sequence[str], *, timeout: float | None = None) -> Vectors:
        calls.append(len(texts))
        return await embed(texts, timeout=timeout)

    monkeypatch.setattr(rig.embedder, "embed", counted)
    return calls


async def test_05_invalid_record_is_named_and_refuses_its_whole_request(worked: httpx.AsyncClient) -> None:
    good, bad = {"id": f"good-{ULID()}", "text": "Ada sails"}, {"id": f"bad-{ULID()}", "text": ""}
    refused = await worked.post("/v1/long-term-memory/", json={"memories": [good, bad]})
    assert refused.status_code == 422
    assert ["body", "memories", 1, "text"] in [one["loc"] for one in refused.json()["detail"]]
    assert (await worked.get(f"/v1/long-term-memory/{good['id']}")).status_code == 404, "refused as a whole, before anything is stored"
    assert (await worked.post("/v1/long-term-memory/", json={"memories": [good]})).status_code == 200


async def test_05_memory_that_cannot_be_embedded_does_not_block_others(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    embed = rig.embedder.embed

    async def picky(texts: Sequence[str], *, timeout: float | None = None) -> Vectors:
        if any("indigestible" in text for text in texts):
            raise ModelAnswerInvalid("no vector for this text", reason="broken")
        return await embed(texts, timeout=timeout)

    monkeypatch.setattr(rig.embedder, "embed", picky)
    await create(
        rig,
        record("Ada keeps bees", "ada", user_id="ada"),
        record("Ada keeps bees", "ben", user_id="ben"),
        record("An indigestible text about bees", "bad", user_id="ben"),
    )
    assert await found_by(rig, SearchModeEnum.KEYWORD, "bees") == {"ada", "ben", "bad"}, "all are stored, and found by words at once"
    await rig.work(DueKind.MEMORY)
    reasons = await rig.rt.outbox.reasons(DueKind.MEMORY)
    assert len(reasons) == 3
    assert all("no vector for this text" in reason for reason in reasons.values()), "the failure is visible"
    for member in reasons:  # after the batch failed, each memory is embedded alone
        await rig.rt.client.zadd(rig.keys.due(DueKind.MEMORY), {member: 1})
        await rig.work(DueKind.MEMORY)
    assert await found_by(rig, SearchModeEnum.SEMANTIC, "bees") == {"ada", "ben"}
    assert len(await rig.rt.outbox.reasons(DueKind.MEMORY)) == 1


async def test_06_merging_keeps_ids_pins_metadata_dates_and_counts(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    lookalike.scripted.raw["likes green tea"] = '{"same": [1, 2, 3, 4, 5, 6, 7, 8, 9]}'  # Merges all memories that it receives.
    async with make_rig(chat, COMPACTION_SIMILARITY=0.6) as rig:
        callers = [
            record("Ada likes green tea in the morning", "mine", user_id="ada", metadata={"source": "crm"}, topics=["tea"]),
            record("Ada likes green tea mornings", "yours", user_id="ada", metadata={"source": "form"}),
            record("Ada likes green tea very much", "pinned", user_id="ada", pinned=True),
        ]
        events = [
            fact(f"Ada likes green tea and drank it on day {day}", f"e{day}", memory_type="episodic", event_date=WHEN + timedelta(days=day))
            for day in (1, 2)
        ]
        known = [fact("Ada likes green tea", "s1", access_count=3, metadata={"a": 1}), fact("Green tea Ada likes", "s2", access_count=4)]
        await rig.remember(*callers, *events, *known)
        before = {one.id: (await rig.rt[MemoryService].get(SCOPE, one.id)).model_dump(exclude=_READ) for one in [*callers, *events]}
        assert await compact(rig.rt, SCOPE, Selection()) >= 1, "what a worker made of one thing said twice"
        assert lookalike.calls["chat"] >= 1
        after = {name: (await rig.rt[MemoryService].get(SCOPE, name)).model_dump(exclude=_READ) for name in before}
        taken = {"extracted_from", "topics", "entities", "metadata"}
        for name, old in before.items():
            assert {key: after[name][key] for key in old.keys() - taken} == {key: old[key] for key in old.keys() - taken}, name
            assert after[name]["metadata"].items() >= old["metadata"].items(), "what a repeat knows besides may be added"
        ids = [(await rig.rt[MemoryService].get(SCOPE, one.id)).id for one in known]
        assert ids == [one.id for one in known], "every id is answered, the merged one too"
        merges = (await rig.rt[HistoryService].read_changes(SCOPE, {"kd": "merge"}, None, 0, 10)).changes
        for merge in merges:
            await rig.rt[HistoryService].undo_by_id(SCOPE, merge.id)
        stored = {memory.id: memory for memory in await rig.stored()}
        texts = {memory.id: memory.text for memory in [*callers, *events, *known]}
        assert {name: memory.text for name, memory in stored.items()} == texts, "and every merge can be undone"
        # This test has read each memory once; the count may already include that.
        assert all(stored[memory.id].access_count - memory.access_count in (0, 1) for memory in known)
        assert {name: (await rig.rt[MemoryService].get(SCOPE, name)).model_dump(exclude=_READ) for name in before} == before
        assert {(await rig.rt[MemoryService].get(SCOPE, one.id)).text for one in known} == {one.text for one in known}


_READ = {"last_accessed", "access_count", "recorded_at"}


async def test_10_all_duplicates_are_merged_and_kept_as_evidence(rig: Rig) -> None:
    texts = ['Ada said "two|three" @t:{*}', "Ada lives in Turin", "Ada plays the violin"]
    names = {text: [f"{place}-{copy}" for copy in range(4)] for place, text in enumerate(texts)}
    await create(rig, *(record(text, name, user_id="ada") for text, some in names.items() for name in some), dedupe=False)
    await rig.index()
    assert len(await rig.stored()) == 12
    assert await compact(rig.rt, SCOPE, Selection()) == 9
    assert sorted(one.text for one in await rig.stored()) == sorted(texts)
    for text, some in names.items():
        assert {(await rig.rt[MemoryService].get(SCOPE, name)).text for name in some} == {text}
        pieces = (await rig.rt[HistoryService].read_evidence(SCOPE, some[3])).evidence
        assert sorted(str(piece.memory_id) for piece in pieces) == some


async def test_36_hundred_creates_need_few_embedding_calls(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, commands = await embedding_calls(rig, monkeypatch), commands_of(rig, monkeypatch)
    await create(rig, *(record(f"Ada keeps item {n} in drawer {n * 7}", f"i{n}", user_id="ada") for n in range(100)))
    assert calls == [], "nothing is embedded within the request"
    assert not [one for one in commands if b"FT.SEARCH" in one], "and nothing is searched"
    assert len(commands) <= 5
    await rig.index()
    assert sum(calls) == 100
    assert len(calls) <= 5


async def test_40_compaction_embeds_nothing_and_compares_only_changes_next_time(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "_PAGE", 20)
    others = [record(f"Ada keeps item {n}", f"i{n}", user_id="ada") for n in range(70)]
    # The copies are the newest memories: they fill more than three pages.
    await rig.remember(*others)
    await create(rig, record("Ada sings", "one", user_id="ada"), record("Ada sings", "two", user_id="ada"), dedupe=False)
    await rig.index()
    calls = await embedding_calls(rig, monkeypatch)
    assert await compact_changed(rig.rt) == 1
    commands = commands_of(rig, monkeypatch)
    assert await compact_changed(rig.rt) == 0
    again = sum(one.count(b"FT.SEARCH") for one in commands)
    assert calls == []
    assert again <= 3, "what has not changed is not compared again"


async def test_40_compaction_runs_as_an_operation(worked: httpx.AsyncClient) -> None:
    answer = await worked.post("/v1/long-term-memory/compact", params={"namespace": f"n-{ULID()}"})
    operation = await worked.get(f"/v1/operations/{answer.headers['x-operation-id']}")
    assert operation.json()["kind"] == "order"
