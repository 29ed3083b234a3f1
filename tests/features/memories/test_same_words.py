"""Test that identical text is one memory, in any session and from any speaker.

Covers its evidence, its search terms, and deletion of its sessions.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agent_memory.features.jobs.erasure_orders import Erasure, ErasureOrders
from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.privacy.purge import PurgeService
from agent_memory.features.sessions.service import SessionService
from agent_memory.features.transfer.export import ExportService
from agent_memory.features.transfer.imports import ImportService
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory_client.models import (
    AppendMessagesRequest,
    CreateMemoryRecordRequest,
    EditMemoryRecordRequest,
    ExtractedMemoryRecord,
    MemoryMessage,
    MemoryRecord,
    PurgeRequest,
    SearchRequest,
    SessionId,
    UpdateWorkingMemory,
)
from tests.support.rig import SCOPE, Rig

BOAT = "The boat lies in Bergen"


async def say(rig: Rig, session: str, *texts: str, on: int = 1, role: str = "user", user: str | None = "ada", **more: Any) -> None:
    """Append messages from a day in March, with ids like "<session>-<number>"."""
    when = datetime(2024, 3, on, 12, tzinfo=UTC)
    messages = [MemoryMessage(role=role, content=text, id=f"{session}-{n}", created_at=when) for n, text in enumerate(texts)]
    await rig.rt[SessionService].append(SCOPE, session, AppendMessagesRequest(messages=messages, user_id=user, **more))
    await rig.work()


async def state(rig: Rig, name: str, text: str = BOAT, user: str | None = "ada", **more: Any) -> None:
    record = ExtractedMemoryRecord(id=name, text=text, user_id=user, memory_type="semantic", **more)
    await rig.rt[MemoryService].create(SCOPE, CreateMemoryRecordRequest(memories=[record]))
    await rig.work()


async def erase(rig: Rig, session: str) -> None:
    await rig.rt[ErasureOrders].order_erasure(SCOPE, Erasure(SCOPE.tenant, None, "ada", session))
    await rig.work(DueKind.DELETION, DueKind.MEMORY)


async def boats(rig: Rig, **request: Any) -> list[MemoryRecord]:
    found = await rig.rt[SearchService].search(SCOPE, SearchRequest(text="boat Bergen", search_mode="keyword", **request))
    return [one for one in found.memories if one.text == BOAT]


async def sources(rig: Rig, name: str) -> list[tuple[str, str | None]]:
    pieces = (await rig.rt[HistoryService].read_evidence(SCOPE, name)).evidence
    return sorted((piece.session_id or "", piece.role) for piece in pieces)


async def terms(rig: Rig, one: MemoryRecord) -> set[str]:
    return set((await rig.rt.client.hget(rig.keys.memory(rig.keys.mid(SCOPE.tenant, one.id)), "k")).decode().split())


async def test_same_text_in_two_sessions_is_one_memory_of_both(rig: Rig) -> None:
    await say(rig, "first", "I came home", BOAT, "I painted the mast", on=1)
    await say(rig, "second", "Look at this storm", BOAT, "I worry for the sail", on=2)
    (one,) = await boats(rig)
    assert (one.session_id, one.created_at.day) == ("first", 1)
    assert await sources(rig, one.id) == [("first", "user"), ("second", "user")]
    pieces = (await rig.rt[HistoryService].read_evidence(SCOPE, one.id)).evidence
    assert [(m.content, m.id, m.created_at.day) for piece in pieces for m in piece.messages] == [
        (BOAT, "first-1", 1),
        (BOAT, "second-1", 2),
    ]
    for session in ("first", "second"):
        assert [found.id for found in await boats(rig, session_id=SessionId(eq=session))] == [one.id]
    (sail,) = [found for found in await rig.stored() if "sail" in found.text]
    assert "bergen" in await terms(rig, sail), "what stands beside the second telling is found by its words"
    await erase(rig, "first")
    (other,) = await boats(rig)
    assert (other.session_id, other.extracted_from, other.created_at.day) == ("second", ["second-1"], 2)
    assert await sources(rig, other.id) == [("second", "user")]
    assert {"storm", "sail"} <= await terms(rig, other), "it is found by what was said around it there"
    assert "mast" not in await terms(rig, other)
    assert await boats(rig, session_id=SessionId(eq="first")) == []
    await say(rig, "third", BOAT)
    assert await sources(rig, other.id) == [("second", "user"), ("third", "user")]
    for session in ("third", "second"):
        await erase(rig, session)
    assert await rig.stored() == []


@pytest.mark.parametrize(
    ("how", "own"), [("erase", {}), ("erase", {"metadata": {"app": "crm"}, "topics": ["boats"], "entities": ["Bergen"]}), ("purge", {})]
)
async def test_repeated_memory_loses_the_tags_and_metadata_of_a_deleted_session(rig: Rig, how: str, own: dict[str, Any]) -> None:
    private = {"metadata": {"note": "diagnosis", "seen": 1}, "topics": ["health"], "entities": ["Clinic"]}
    await state(rig, "a", session_id="first", **private)
    await state(rig, "b", session_id="second", **own)
    (one,) = await rig.stored()
    await rig.rt[MemoryService].patch(SCOPE, one.id, EditMemoryRecordRequest(metadata=one.metadata | {"seen": 2}))
    if how == "erase":
        await erase(rig, "first")
    else:
        await rig.rt[PurgeService].order(SCOPE, PurgeRequest(session_id="first"), None, "ada", dry_run=False)
        await rig.work(DueKind.ORDER, DueKind.MEMORY)
    (one,) = await rig.stored()
    assert (one.session_id, one.text) == ("second", BOAT)
    assert (one.metadata, one.topics, one.entities) == (
        own.get("metadata", {}) | {"seen": 2},
        own.get("topics", []),
        own.get("entities", []),
    )


async def test_deleting_the_later_session_keeps_the_memory_without_its_evidence(rig: Rig) -> None:
    await say(rig, "first", BOAT)
    await say(rig, "second", "Look at this storm", BOAT, on=2)
    (one,) = await boats(rig)
    await erase(rig, "second")
    assert [found.id for found in await boats(rig)] == [one.id]
    assert await sources(rig, one.id) == [("first", "user")]
    assert await boats(rig, session_id=SessionId(eq="second")) == []
    await erase(rig, "first")
    assert await rig.stored() == []
    assert {key.partition(":")[0] for key in await rig.raw_keys()}.isdisjoint({"m", "v", "h", "mh", "ev", "al", "by", "mo"})


async def test_statement_absorbs_messages_with_its_text_and_their_neighbor_terms(rig: Rig) -> None:
    await say(rig, "chat", "Look at this storm", BOAT, "I worry for the sail")
    await say(rig, "other", BOAT, on=3)
    (turn,) = await boats(rig)
    await state(rig, "stated", created_at=datetime(2024, 3, 5, tzinfo=UTC))
    (one,) = await boats(rig)
    assert (one.id, one.memory_type) == ("stated", "semantic")
    assert (await rig.rt[MemoryService].get(SCOPE, turn.id)).text == BOAT, "the message's id stays valid"
    assert await sources(rig, "stated") == [("", None), ("chat", "user"), ("other", "user")]
    assert {"storm", "sail"} <= await terms(rig, one)
    assert [found.id for found in await boats(rig, session_id=SessionId(eq="chat"))] == ["stated"]
    await rig.rt[MemoryService].patch(SCOPE, "stated", EditMemoryRecordRequest(metadata={"seen": True}))
    await rig.index()
    (one,) = await boats(rig, session_id=SessionId(eq="other"))
    assert {"storm", "sail"} <= await terms(rig, one)
    await erase(rig, "chat")
    (one,) = await boats(rig)
    assert {"storm", "sail"}.isdisjoint(await terms(rig, one)), "nor is it found any more by what was deleted"
    assert await sources(rig, "stated") == [("", None), ("other", "user")]
    await erase(rig, "other")
    assert await sources(rig, "stated") == [("", None)]
    await rig.rt[MemoryService].delete(SCOPE, ["stated"])
    assert await rig.stored() == []


async def test_message_with_the_text_of_a_statement_becomes_its_evidence(rig: Rig) -> None:
    await state(rig, "stated")
    await say(rig, "chat", "Look at this storm", BOAT)
    await say(rig, "chat again", BOAT, role="assistant", on=2)
    (one,) = await boats(rig)
    assert one.id == "stated"
    assert await sources(rig, "stated") == [("", None), ("chat", "user"), ("chat again", "assistant")], "and it is told who said it"
    assert "storm" in await terms(rig, one)
    await rig.rt[MemoryService].delete(SCOPE, ["stated"])
    messages = [MemoryMessage(role="user", content=BOAT, id="chat-1", created_at=datetime(2024, 3, 1, 12, tzinfo=UTC))]
    await rig.rt[SessionService].put(SCOPE, "chat", UpdateWorkingMemory(messages=messages, user_id="ada"))
    await rig.work()
    assert await boats(rig) == [], "what was deleted is not remembered again for a message that was known"


async def test_erasing_a_statements_session_keeps_evidence_from_others(rig: Rig) -> None:
    """The other client's statement comes first and remains. The message becomes its evidence."""
    held = {"messages": [], "memories": [{"id": "held", "text": BOAT, "memory_type": "semantic"}], "user_id": "ada"}
    await rig.rt[SessionService].put(SCOPE, "tools", UpdateWorkingMemory.model_validate(held))
    await rig.work()
    await say(rig, "chat", BOAT)
    await state(rig, "stated")
    (one,) = await boats(rig)
    assert one.id == "held"
    await erase(rig, "tools")
    (one,) = await boats(rig)
    assert (one.id, one.session_id, one.memory_type) == ("stated", None, "semantic")
    assert await sources(rig, "stated") == [("", None), ("chat", "user")]
    await state(rig, "once more")
    assert [found.id for found in await boats(rig)] == ["stated"]
    await erase(rig, "chat")
    assert [found.id for found in await boats(rig)] == ["stated"]


async def test_evidence_keeps_its_original_text_after_a_correction(rig: Rig) -> None:
    held = {"messages": [], "memories": [{"id": "held", "text": BOAT, "memory_type": "semantic"}], "user_id": "ada"}
    await rig.rt[SessionService].put(SCOPE, "tools", UpdateWorkingMemory.model_validate(held))
    await rig.work()
    await say(rig, "chat", BOAT.upper())
    await rig.rt[MemoryService].patch(SCOPE, "held", EditMemoryRecordRequest(text="The boat lies in Oslo"))
    pieces = (await rig.rt[HistoryService].read_evidence(SCOPE, "held")).evidence
    assert [message.content for piece in pieces for message in piece.messages] == [BOAT.upper()]
    await erase(rig, "tools")
    assert [one.text for one in await rig.stored()] == [BOAT.upper()]


async def test_text_with_a_relative_day_is_a_new_memory_on_another_day(rig: Rig) -> None:
    for day in (1, 2):
        await say(rig, f"day {day}", "I sailed to Bergen yesterday", "The sail is red", on=day)
    texts = sorted(one.text for one in await rig.stored())
    assert texts == ["I sailed to Bergen yesterday", "I sailed to Bergen yesterday", "The sail is red"]


async def test_edited_message_is_no_longer_evidence_of_its_old_text(rig: Rig) -> None:
    await say(rig, "first", BOAT)
    await say(rig, "second", BOAT)
    (one,) = await boats(rig)
    messages = [MemoryMessage(role="user", content="The boat lies in Oslo", id="second-0", created_at=datetime(2024, 3, 1, 12, tzinfo=UTC))]
    await rig.rt[SessionService].put(SCOPE, "second", UpdateWorkingMemory(messages=messages, user_id="ada"))
    await rig.work()
    assert await sources(rig, one.id) == [("first", "user")]
    assert sorted(found.text for found in await rig.stored()) == [BOAT, "The boat lies in Oslo"]


async def test_same_text_of_different_owners_is_never_shared(rig: Rig) -> None:
    await say(rig, "s", BOAT)
    await say(rig, "s", BOAT, user="bob")
    await say(rig, "s", BOAT, namespace="n")
    await state(rig, "bob's", user="bob")
    await state(rig, "n's", namespace="n")
    record = ExtractedMemoryRecord(id="theirs", text=BOAT, user_id="ada")
    await rig.rt[MemoryService].create(scope_of_work("others"), CreateMemoryRecordRequest(memories=[record]))
    found = {(one.user_id, one.namespace, one.memory_type.value) for one in await rig.stored() if one.text == BOAT}
    assert found == {("ada", None, "message"), ("bob", None, "semantic"), ("ada", "n", "semantic")}
    (theirs,) = await rig.rt[MemoryStore].get(scope_of_work("others"), ["theirs"])
    assert theirs is not None
    assert theirs.text == BOAT


async def test_import_merges_with_existing_memories_and_keeps_evidence(rig: Rig) -> None:
    """Import various combinations of statements and messages where the same text already exists."""
    await say(rig, "chat", "Look at this storm", BOAT)
    message = await exported(rig)
    await state(rig, "stated")
    both = await exported(rig)
    for name, lines, before in (("one", both, None), ("two", message, "stated"), ("three", both, "said"), ("four", message, "said")):
        there = scope_of_work(name)
        if before == "stated":
            record = ExtractedMemoryRecord(id="here", text=BOAT, user_id="ada", memory_type="semantic")
            await rig.rt[MemoryService].create(there, CreateMemoryRecordRequest(memories=[record]))
        elif before == "said":
            said = MemoryMessage(role="user", content=BOAT, id="here", created_at=datetime(2024, 3, 9, tzinfo=UTC))
            await rig.rt[SessionService].append(there, "other", AppendMessagesRequest(messages=[said], user_id="ada"))
            await rig.work()
        seen: list[Any] = []
        for _ in range(2):
            report = await rig.rt[ImportService].run(there, None, "ada", lines)
            assert report.complete
            assert report.problems == []
            await rig.work()
            listed = (await rig.rt[SearchService].search(there, SearchRequest(text="boat Bergen", search_mode="keyword"))).memories
            (one,) = [found for found in listed if found.text == BOAT]
            pieces = (await rig.rt[HistoryService].read_evidence(there, one.id)).evidence
            seen.append((one.id, sorted((piece.session_id or "", *piece.message_ids) for piece in pieces)))
        assert seen[0] == seen[1], "a second time changes nothing"
        stated = [("",)] if name != "four" else []
        other = [("other", "here")] if before == "said" else []
        assert seen[0][1] == [*stated, ("chat", "chat-1"), *other], name


async def exported(rig: Rig) -> bytes:
    _, lines = await rig.rt[ExportService].begin(SCOPE, None, "ada")
    return b"".join([line async for line in lines])
