"""Test the last mention, count and speaker of repeated statements.

Covers changes when evidence is deleted.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent_memory.features.jobs.erasure_orders import Erasure, ErasureOrders
from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.duplicates.repeats import merge_records
from agent_memory.features.memories.duplicates.store import MergeStore
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.sessions.service import SessionService
from agent_memory.features.transfer.export import ExportService
from agent_memory.features.transfer.imports import ImportService
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory_client.models import (
    AppendMessagesRequest,
    CreateMemoryRecordRequest,
    EditMemoryRecordRequest,
    ExtractedMemoryRecord,
    MemoryMessage,
    MemoryRecord,
    SearchRequest,
    UpdateWorkingMemory,
)
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig

MONDAY = datetime(2024, 3, 4, 12, tzinfo=UTC)
FRIDAY, SATURDAY = MONDAY + timedelta(days=4), MONDAY + timedelta(days=5)
BOAT = "The boat lies in Bergen"


async def say(rig: Rig, session: str, *said: tuple[str, str, datetime], role: str = "user", user: str = "ada", scope: Any = SCOPE) -> None:
    """Append messages, given as (id, text, time)."""
    messages = [MemoryMessage(role=role, content=text, id=name, created_at=when) for name, text, when in said]
    await rig.rt[SessionService].append(scope, session, AppendMessagesRequest(messages=messages, user_id=user))
    await rig.work()


async def memory_of(rig: Rig, text: str, **fields: Any) -> MemoryRecord:
    (memory,) = [memory for memory in await rig.stored() if memory.text == text and all(getattr(memory, k) == v for k, v in fields.items())]
    return memory


async def sayings(rig: Rig, memory: MemoryRecord, scope: Any = SCOPE) -> tuple[datetime, int]:
    """Return a memory's last mention and mention count. Assert that both documents agree."""
    mid = rig.keys.mid(scope.tenant, memory.id)
    last, times = await rig.rt.client.hmget(rig.keys.memory(mid), ["ls", "ts"])
    assert await rig.rt.client.hget(rig.keys.vector(mid), "ls") == last, "both documents say the same"
    return memory.created_at if last is None else datetime.fromtimestamp(float(last), UTC), int(times or 1)


async def erase(rig: Rig, session: str) -> None:
    await rig.rt[ErasureOrders].order_erasure(SCOPE, Erasure(SCOPE.tenant, None, "ada", session))
    await rig.work(DueKind.DELETION, DueKind.MEMORY)


async def test_repeated_statement_has_the_time_of_its_last_mention(rig: Rig) -> None:
    await say(rig, "mon", ("1", "I drink coffee", MONDAY))
    await say(rig, "fri", ("2", "I do not drink coffee", FRIDAY))
    await say(rig, "sat", ("3", "I drink coffee!", SATURDAY))
    coffee, denial = await memory_of(rig, "I drink coffee"), await memory_of(rig, "I do not drink coffee")
    assert await sayings(rig, coffee) == (SATURDAY, 2)
    assert await sayings(rig, denial) == (FRIDAY, 1)
    assert coffee.created_at == MONDAY, "when it was first said stays"
    pieces = (await rig.rt[HistoryService].read_evidence(SCOPE, coffee.id)).evidence
    assert [piece.at for piece in pieces] == [MONDAY, SATURDAY]


async def test_earlier_repetition_is_counted_without_changing_the_last_mention(rig: Rig) -> None:
    await say(rig, "late", ("1", BOAT, SATURDAY))
    await say(rig, "early", ("2", BOAT, MONDAY))
    assert await sayings(rig, await memory_of(rig, BOAT)) == (SATURDAY, 2)


async def test_message_delivered_three_times_counts_once(rig: Rig) -> None:
    await say(rig, "first", ("1", BOAT, MONDAY))
    for _ in range(3):
        await say(rig, "second", ("2", BOAT, FRIDAY))
        messages = [MemoryMessage(role="user", content=BOAT, id="2", created_at=FRIDAY)]
        await rig.rt[SessionService].put(SCOPE, "second", UpdateWorkingMemory(messages=messages, user_id="ada"))
        await rig.work()
        await rig.rt[SessionService].delete(SCOPE, "second", user_id="ada")
    assert await sayings(rig, await memory_of(rig, BOAT)) == (FRIDAY, 2)


async def test_mentions_by_other_speakers_users_or_tenants_are_counted_separately(rig: Rig) -> None:
    await say(rig, "s", ("1", BOAT, MONDAY))
    await say(rig, "s", ("2", BOAT, FRIDAY), role="assistant")
    await say(rig, "s", ("3", BOAT, SATURDAY), user="bob")
    await say(rig, "s", ("4", BOAT, SATURDAY), scope=scope_of_work("others"))
    memories = [memory for memory in await rig.stored() if memory.text == BOAT]
    rows = [(memory.user_id, memory.metadata["role"], *(await sayings(rig, memory))) for memory in memories]
    assert sorted(rows) == [
        ("ada", "assistant", FRIDAY, 1),
        ("ada", "user", MONDAY, 1),
        ("bob", "user", SATURDAY, 1),
    ]


async def test_user_repetition_counts_for_a_statement_but_assistants_does_not(rig: Rig) -> None:
    record = ExtractedMemoryRecord(id="stated", text=BOAT, user_id="ada", memory_type="semantic", created_at=MONDAY)
    await rig.rt[MemoryService].create(SCOPE, CreateMemoryRecordRequest(memories=[record]))
    await say(rig, "a", ("1", BOAT, FRIDAY), role="assistant")
    assert await sayings(rig, await memory_of(rig, BOAT)) == (MONDAY, 1)
    await say(rig, "b", ("2", BOAT, SATURDAY))
    assert await sayings(rig, await memory_of(rig, BOAT)) == (SATURDAY, 2)
    again = ExtractedMemoryRecord(id="again", text=BOAT, user_id="ada", memory_type="semantic", created_at=SATURDAY + timedelta(days=1))
    for _ in range(2):
        await rig.rt[MemoryService].create(SCOPE, CreateMemoryRecordRequest(memories=[again]))
    await rig.work()
    assert await sayings(rig, await memory_of(rig, BOAT)) == (SATURDAY + timedelta(days=1), 3)


async def test_statement_inherits_the_mention_count_of_its_messages(rig: Rig) -> None:
    await say(rig, "chat", ("1", BOAT, MONDAY), ("2", BOAT, FRIDAY), ("3", BOAT, SATURDAY))
    record = ExtractedMemoryRecord(id="stated", text=BOAT, user_id="ada", memory_type="semantic", created_at=MONDAY - timedelta(days=1))
    await rig.rt[MemoryService].create(SCOPE, CreateMemoryRecordRequest(memories=[record]))
    await rig.work()
    assert await sayings(rig, await memory_of(rig, BOAT)) == (SATURDAY, 4)


def _hours(count: int, start: int = 0) -> list[tuple[str, str, datetime]]:
    return [(f"m{n}", BOAT, MONDAY + timedelta(hours=n)) for n in range(start, start + count)]


async def test_evidence_keeps_the_first_and_last_fifty_of_sixty_mentions(rig: Rig) -> None:
    for session, start in (("a", 0), ("b", 6), ("a", 12)):
        await say(rig, session, *_hours(6 if start < 12 else 48, start))
    memory = await memory_of(rig, BOAT)
    assert await sayings(rig, memory) == (MONDAY + timedelta(hours=59), 60)
    pieces = (await rig.rt[HistoryService].read_evidence(SCOPE, memory.id)).evidence
    assert sorted(piece.at for piece in pieces if piece.at) == [MONDAY, *(MONDAY + timedelta(hours=n) for n in range(10, 60))]
    await say(rig, "a", *_hours(6))
    await say(rig, "b", *_hours(6, 6))
    assert await sayings(rig, memory) == (MONDAY + timedelta(hours=59), 60), "what comes again does not count again"
    await erase(rig, "b")
    assert await sayings(rig, memory) == (MONDAY + timedelta(hours=59), 54), "nor does what was said in a session that is gone"
    assert await rig.rt.client.hget(rig.keys.memory(rig.keys.mid(SCOPE.tenant, memory.id)), "s") == b"61"
    await erase(rig, "a")
    assert await rig.stored() == []
    assert {key.partition(":")[0] for key in await rig.raw_keys()}.isdisjoint({"m", "v", "h", "mh", "ev", "al", "by", "mo"})


async def test_mention_count_excludes_the_erased_first_session(rig: Rig) -> None:
    await say(rig, "a", *_hours(2))
    await say(rig, "b", *_hours(58, 2))
    await erase(rig, "a")
    memory = await memory_of(rig, BOAT)
    assert memory.session_id == "b"
    assert await sayings(rig, memory) == (MONDAY + timedelta(hours=59), 58)


async def test_last_mention_falls_back_when_its_session_is_erased(rig: Rig) -> None:
    await say(rig, "a", ("1", BOAT, MONDAY))
    await say(rig, "b", ("2", BOAT, FRIDAY))
    await say(rig, "c", ("3", BOAT, SATURDAY))
    await erase(rig, "c")
    memory = await memory_of(rig, BOAT)
    assert await sayings(rig, memory) == (FRIDAY, 2)
    await erase(rig, "b")
    assert await sayings(rig, memory) == (MONDAY, 1)


async def test_edited_text_has_the_time_of_the_edit(rig: Rig) -> None:
    await say(rig, "a", ("1", BOAT, MONDAY), ("2", BOAT, FRIDAY))
    memory = await memory_of(rig, BOAT)
    await rig.rt[MemoryService].patch(SCOPE, memory.id, EditMemoryRecordRequest(topics=["boats"]))
    await rig.index()
    assert await sayings(rig, memory) == (FRIDAY, 2), "other tags are not other words"
    before = datetime.now(UTC) - timedelta(minutes=1)
    await rig.rt[MemoryService].patch(SCOPE, memory.id, EditMemoryRecordRequest(text="The boat lies in Oslo"))
    await rig.index()
    last, times = await sayings(rig, memory)
    assert (last > before, times) == (True, 1), "the other words were said before"
    soon = datetime.now(UTC) + timedelta(minutes=1)
    await say(rig, "a", ("3", "The boat lies in Oslo", soon))
    assert await sayings(rig, memory) == (soon, 2), "and are said again from then on"


async def test_edit_that_takes_over_a_slot_has_the_time_of_the_edit(rig: Rig) -> None:
    fact: dict[str, Any] = {"user_id": "ada", "memory_type": "semantic"}
    home = ExtractedMemoryRecord(id="home", text="Ada lives in Bergen", slot="home", created_at=MONDAY, **fact)
    other = ExtractedMemoryRecord(id="other", text="Ada moves", created_at=FRIDAY, **fact)
    await rig.rt[MemoryService].create(SCOPE, CreateMemoryRecordRequest(memories=[home, other]))
    before = datetime.now(UTC) - timedelta(minutes=1)
    await rig.rt[MemoryService].patch(SCOPE, "other", EditMemoryRecordRequest(text="Ada lives in Oslo", slot="home"))
    await rig.work()
    assert (await sayings(rig, await memory_of(rig, "Ada lives in Oslo")))[0] > before


async def test_export_and_import_preserve_mention_times_and_counts(rig: Rig) -> None:
    await say(rig, "a", *_hours(60))
    await say(rig, "b", ("1", "I drink coffee", MONDAY))
    await rig.rt[MemoryService].patch(SCOPE, (await memory_of(rig, "I drink coffee")).id, EditMemoryRecordRequest(text="I drink tea"))
    await rig.work()
    here = {memory.text: await sayings(rig, memory) for memory in await rig.stored()}
    _, pages = await rig.rt[ExportService].begin(SCOPE, None, "ada")
    lines = b"".join([line async for line in pages])
    there = scope_of_work("there")
    for _ in range(2):
        report = await rig.rt[ImportService].run(there, None, "ada", lines)
        assert (report.problems, report.complete) == ([], True)
        await rig.work()
    ids = [memory.id for memory in await rig.stored()]
    memories = [memory for memory in await rig.rt[MemoryStore].get(there, ids) if memory is not None]
    assert {memory.text: await sayings(rig, memory, there) for memory in memories} == here
    assert here[BOAT] == (MONDAY + timedelta(hours=59), 60)
    await say(rig, "a", *_hours(60), scope=there)
    (boat,) = [memory for memory in memories if memory.text == BOAT]
    assert (await sayings(rig, boat, there))[1] == 60, "messages that were counted there are not counted again here"


@pytest.mark.parametrize("action", ["NONE", "same words"])
async def test_fact_repeated_by_a_later_message_has_that_messages_time(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike, action: str
) -> None:
    """Either a model recognizes the repetition, or the words match. Each message counts once."""
    scripted = lookalike.scripted
    scripted.silent = True
    later = "Ada eats no meat" if action == "NONE" else "Ada is vegetarian"
    scripted.facts["I am a vegetarian"] = [{"text": "Ada is vegetarian", "type": "semantic"}]
    scripted.facts["I eat no meat, as a vegetarian"] = [{"text": later, "type": "semantic"}]
    scripted.decisions["Ada eats no meat"] = ["NONE", "Ada is vegetarian"]
    async with make_rig(chat, EXTRACTION_DEBOUNCE_SECONDS="0") as rig:
        await say(rig, "mon", ("1", "I am a vegetarian", MONDAY))
        for _ in range(2):
            await say(rig, "sat", ("2", "I eat no meat, as a vegetarian", SATURDAY))
        fact = await memory_of(rig, "Ada is vegetarian")
        assert await sayings(rig, fact) == (SATURDAY, 2)
        assert fact.created_at == MONDAY
        await erase(rig, "sat")
        assert await sayings(rig, fact) == (MONDAY, 1)


async def test_merge_adds_mention_counts_and_undo_separates_them(rig: Rig) -> None:
    for name, text, day in (("one", "The boat is in Bergen", MONDAY), ("two", "In Bergen is the boat", SATURDAY)):
        record = ExtractedMemoryRecord(id=name, text=text, user_id="ada", memory_type="semantic", created_at=day)
        await rig.rt[MemoryService].create(SCOPE, CreateMemoryRecordRequest(memories=[record]))
        await say(rig, name, (name, text, day))
    one, two = await rig.rt[MemoryStore].find(SCOPE, ["one", "two"])
    assert one is not None
    assert two is not None
    assert await rig.rt[MergeStore].merge_memories(SCOPE, one, merge_records(one.record, [two.record]), [two])
    await rig.index()
    assert await sayings(rig, one.record) == (SATURDAY, 4)
    changes = await rig.rt[HistoryService].read_changes(SCOPE, {}, "one", 0, 10)
    await rig.rt[HistoryService].undo_by_id(SCOPE, changes.changes[0].id)
    await rig.index()
    assert await sayings(rig, one.record) == (MONDAY, 2)
    assert await sayings(rig, two.record) == (SATURDAY, 2)


@pytest.mark.parametrize(
    "request_fields",
    [{}, {"limit": 1}, {"distinct": True}, {"recency_boost": True}, {"recency_boost": True, "search_mode": "semantic"}],
    ids=["a page", "a short page", "without duplicates", "weighed", "weighed by meaning"],
)
async def test_repeated_statement_is_ranked_by_its_last_mention(rig: Rig, request_fields: dict[str, Any]) -> None:
    now = datetime.now(UTC)
    days = [now - timedelta(days=days) for days in (90, 60, 1)]
    for name, text, day in (("1", "The red boat lies here", days[0]), ("2", "The red boat lies there", days[1])):
        record = ExtractedMemoryRecord(id=name, text=text, user_id="ada", memory_type="semantic", created_at=day, last_accessed=day)
        await rig.rt[MemoryService].create(SCOPE, CreateMemoryRecordRequest(memories=[record]))
        await rig.work()
    request = SearchRequest(text="red boat", **{"search_mode": "keyword", **request_fields})
    first = (await rig.rt[SearchService].search(SCOPE, request)).memories[0]
    assert first.id == "2", "of what was said once the newer comes first"
    await rig.rt.client.delete(rig.keys.usage)
    await say(rig, "s", ("3", "The red boat lies here", days[2]))
    first = (await rig.rt[SearchService].search(SCOPE, request)).memories[0]
    assert (first.id, first.created_at) == ("1", days[0])


async def test_near_duplicates_count_as_mentions_and_keep_their_own_words(rig: Rig) -> None:
    await say(rig, "a", ("1", "I am vegan", MONDAY))
    await say(rig, "b", ("2", "I'm a vegan!", FRIDAY))
    await say(rig, "c", ("3", "I am really vegan", SATURDAY))
    (memory,) = await rig.stored()
    assert (memory.text, await sayings(rig, memory)) == ("I am vegan", (SATURDAY, 3))
    pieces = (await rig.rt[HistoryService].read_evidence(SCOPE, memory.id)).evidence
    assert sorted(message.content for piece in pieces for message in piece.messages) == ["I am really vegan", "I am vegan", "I'm a vegan!"]
    await erase(rig, "a")
    (memory,) = await rig.stored()
    assert (memory.text, await sayings(rig, memory)) == ("I'm a vegan!", (SATURDAY, 2))
    await say(rig, "d", ("4", "I am vegan", SATURDAY + timedelta(days=1)))
    assert await sayings(rig, memory) == (SATURDAY + timedelta(days=1), 3)
    for session in "bcd":
        await erase(rig, session)
    assert {key.partition(":")[0] for key in await rig.raw_keys()}.isdisjoint({"m", "v", "h", "mh", "ev", "al", "by", "mo"})


async def test_relative_period_counts_as_repetition_only_within_the_same_period(rig: Rig) -> None:
    for session, text, on in (("a", "I run every day this month", MONDAY), ("b", "I run every day this month", SATURDAY)):
        await say(rig, session, ("1" + session, text, on))
    await say(rig, "c", ("2", "I run every day this month", MONDAY + timedelta(days=40)))
    await say(rig, "d", ("3", "I ran a lot this week", MONDAY))
    await say(rig, "e", ("4", "I ran a lot this week", MONDAY + timedelta(days=7)))
    rows = [(memory.text, await sayings(rig, memory)) for memory in await rig.stored()]
    assert sorted(rows) == [
        ("I ran a lot this week", (MONDAY, 1)),
        ("I ran a lot this week", (MONDAY + timedelta(days=7), 1)),
        ("I run every day this month", (SATURDAY, 2)),
        ("I run every day this month", (MONDAY + timedelta(days=40), 1)),
    ]


async def test_near_duplicates_of_other_speakers_users_or_days_stay_separate(rig: Rig) -> None:
    await say(rig, "a", ("1", "I am vegan", MONDAY), ("2", "I was in Bergen yesterday", MONDAY))
    await say(rig, "b", ("3", "I'm a vegan", FRIDAY), role="assistant")
    await say(rig, "c", ("4", "I'm a vegan", FRIDAY), user="bob")
    await say(rig, "d", ("5", "I really was in Bergen yesterday", SATURDAY))
    rows = [(memory.text, await sayings(rig, memory)) for memory in await rig.stored()]
    assert sorted(rows) == [
        ("I am vegan", (MONDAY, 1)),
        ("I really was in Bergen yesterday", (SATURDAY, 1)),
        ("I was in Bergen yesterday", (MONDAY, 1)),
        ("I'm a vegan", (FRIDAY, 1)),
        ("I'm a vegan", (FRIDAY, 1)),
    ]
