"""Test that extraction writes the facts and the cursor atomically."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from agent_memory.features.extraction.prompts import ExtractionAnswer
from agent_memory.features.extraction.reconcile_prompts import ReconcileAnswer
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.sessions.service import SessionService
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.errors import ModelAnswerInvalid, ModelUnavailable
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory_client.models import MemoryMessage, MemoryRecord, UpdateWorkingMemory
from agent_memory_worker.extraction.extract import extract_facts
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig, gathered

X = DueKind.EXTRACTION
REF = SessionRef("s")
OFF = {"INDEX_ALL_MESSAGES_IN_LONG_TERM_MEMORY": "false", "EXTRACTION_DEBOUNCE_SECONDS": "0"}


async def facts(rig: Rig) -> list[MemoryRecord]:
    return sorted((one for one in await rig.stored() if one.memory_type != "message"), key=lambda one: one.text)


async def cursor(rig: Rig) -> int:
    state = await rig.rt[SessionStore].get(SCOPE, REF)
    assert state is not None
    return state.extracted_to


def answering(chat: OpenAIChat, monkeypatch: pytest.MonkeyPatch, *answers: dict[str, Any]) -> None:
    """Script the model to return these facts one at a time, and to decide ADD for each."""
    left = list(answers)

    async def structured(messages: Any, answer: Any, **__: Any) -> Any:
        if answer is ReconcileAnswer:
            new = messages[-1].content.count('{"n": ')
            return ReconcileAnswer.model_validate({"decisions": [{"n": n, "action": "ADD"} for n in range(1, new + 1)]})
        return ExtractionAnswer.model_validate({"memories": [left.pop(0)] if left else []})

    monkeypatch.setattr(chat, "structured", structured)


async def test_facts_record_their_session_and_messages(make_rig: MakeRig, chat: OpenAIChat) -> None:
    async with make_rig(chat, **OFF) as rig:
        await rig.append("s", "Anna lives in Oslo", "hello", "Ben went to Rome yesterday", namespace="n", user_id="u")
        await rig.work()
        anna, ben = await facts(rig)
        assert (anna.memory_type, anna.namespace, anna.user_id, anna.session_id) == ("semantic", "n", "u", "s")
        assert anna.extracted_from == ["s-Anna lives in Oslo"]
        assert (ben.memory_type, ben.extracted_from) == ("episodic", ["s-Ben went to Rome yesterday"])
        assert ben.event_date is not None
        assert anna.topics
        messages = (await rig.rt[SessionService].get(SCOPE, "s", namespace="n", user_id="u")).session.messages
        assert {message.discrete_memory_extracted for message in messages} == {"t"}


async def test_extraction_sends_only_new_messages_with_a_little_context(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    async with make_rig(chat, **OFF) as rig:
        await rig.append("s", *(f"Fact number {number} is known" for number in range(30)))
        await rig.work()
        lookalike.forget()
        await rig.append("s", "Zoe moved to Bergen")
        await rig.work()
        prompt = lookalike.bodies("chat")[0]["messages"][-1]["content"]
        context, new = prompt.split("New messages")
        assert "Zoe" in new
        assert "Fact number" not in new
        assert "Zoe" not in context
        assert [f"number {number} " in context for number in (18, 20, 29)] == [False, True, True]
        assert len(await facts(rig)) == 31


async def test_long_backlog_is_extracted_in_batches(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    async with make_rig(chat, **OFF, EXTRACTION_BATCH_TOKENS=200) as rig:
        await rig.append("s", *(f"Fact number {number} is known to all of us" for number in range(100)))
        await rig.work(DueKind.SESSION, X)
        assert len(lookalike.bodies("chat")) >= 5
        assert len(await facts(rig)) == 100
        assert await cursor(rig) == 100


@pytest.mark.parametrize(
    "fault",
    ["garbage", "wrong_types", "truncated", "refusal", "empty_choices", "no_content", "length", "html", "garbage_body", "null", "500"],
)
async def test_invalid_model_answer_changes_nothing(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike, fault: str) -> None:
    async with make_rig(chat, **OFF) as rig:
        await rig.append("s", "Anna lives in Oslo")
        lookalike.set_fault(fault)
        with pytest.raises((ModelAnswerInvalid, ModelUnavailable)):
            await extract_facts(rig.rt, rig.sid(REF))
        assert (await facts(rig), await cursor(rig)) == ([], 0)
        await rig.work(DueKind.SESSION, X)
        reason = (await rig.rt.outbox.reasons(X))[rig.sid(REF)]
        assert reason.startswith(("ModelAnswerInvalid", "ModelUnavailable"))
        message = (await rig.rt[SessionService].get(SCOPE, "s")).session.messages[0]
        assert message.discrete_memory_extracted == "f"


async def test_odd_model_output_is_cleaned_before_storage(make_rig: MakeRig, chat: OpenAIChat, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = [
        {"text": "\x00 bell \x07 and\x1b[0m e\u0301", "topics": ["a,b", "\x00", " x "], "entities": ["\ud800"], "messages": [99, -1, 0]},
        {"text": "\x00\x01", "messages": [1]},
        {"text": "dates", "event_date": "0001-01-01T00:00:00+14:00", "messages": [1, 1, 2]},
        {"text": "more dates", "event_date": "2024-05-01", "type": "unheard of"},
    ]
    answering(chat, monkeypatch, *odd)
    async with make_rig(chat, **OFF) as rig:
        for number in range(len(odd)):
            said = f"Bell, cafe\u0301, dates and more dates, {number}"
            body = UpdateWorkingMemory(messages=[MemoryMessage(role="user", content=said, id=f"m,{number}")])
            await rig.rt[SessionService].put(SCOPE, "s", body)
            await extract_facts(rig.rt, rig.sid(REF))
        bell, dates, more = await facts(rig)
        assert bell.text == "bell and [0m é"
        assert bell.topics == ["a b", "x"]
        assert bell.extracted_from == ["m,0"]
        assert (dates.event_date, dates.extracted_from) == (None, ["m,2"])
        assert (more.event_date, more.memory_type) == (datetime(2024, 5, 1, tzinfo=UTC), "semantic")
        await rig.work()
        assert (await rig.rt.outbox.backlog())[DueKind.MEMORY].pending == 0


async def test_repeated_fact_is_stored_once_with_more_evidence(
    make_rig: MakeRig, chat: OpenAIChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(chat, monkeypatch, {"text": "Anna lives in Oslo."}, {"text": " anna  lives in oslo. "}, {"text": "Anna lives in Oslo."})
    async with make_rig(chat, **OFF) as rig:
        for session in ("s", "s", "t"):
            await rig.append(session, f"Anna lives in Oslo {len(await facts(rig))} {session}", user_id="u")
            await rig.work(DueKind.SESSION, X)
        (one,) = await facts(rig)
        later = [json.loads(raw) for raw in await rig.rt.client.hvals(rig.keys.evidence(rig.rt[MemoryStore].mid(SCOPE, one.id)))]
        assert sorted([one.session_id, *(evidence["session_id"] for evidence in later)]) == ["s", "s", "t"]


async def test_deleted_fact_is_not_extracted_again_after_a_replay(make_rig: MakeRig, chat: OpenAIChat) -> None:
    async with make_rig(chat, **OFF) as rig:
        await rig.append("s", "Anna lives in Oslo")
        (claim,) = await rig.claim(X)
        journal = await rig.rt[SessionStore].journal(rig.sid(REF), "je", 10)
        await extract_facts(rig.rt, rig.sid(REF))
        (one,) = await facts(rig)
        await rig.rt[MemoryService].delete(SCOPE, [one.id])
        assert journal is not None
        # The first worker died before it reported success: the cursor returns to its former position, and all work runs again.
        await rig.rt.client.hset(rig.keys.session(rig.sid(REF)).journal, "je", "0")
        await extract_facts(rig.rt, rig.sid(REF))
        assert await facts(rig) == []
        assert claim.member == rig.sid(REF)


@pytest.mark.parametrize("change", ["delete", "delete and write", "append", "put"])
async def test_append_or_delete_during_extraction_takes_effect(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike, change: str
) -> None:
    async with make_rig(chat, **OFF) as rig:
        await rig.append("s", "Anna lives in Oslo")
        lookalike.latency_seconds = 0.3
        try:
            running = asyncio.create_task(extract_facts(rig.rt, rig.sid(REF)))
            await lookalike.wait_for_call("chat")
            if change.startswith("delete"):
                await rig.rt[SessionService].delete(SCOPE, "s")
            if change in ("append", "delete and write"):
                await rig.append("s", "Ben lives in Rome")
            if change == "put":
                body = UpdateWorkingMemory(messages=[MemoryMessage(role="user", content="Ben lives in Rome")])
                await rig.rt[SessionService].put(SCOPE, "s", body)
            await running
        finally:
            lookalike.latency_seconds = 0.0
        await rig.work(X)
        said = [one.text.removeprefix("User said: ") for one in await facts(rig)]
        both = ["Anna lives in Oslo", "Ben lives in Rome"]
        assert said == {"delete": [], "delete and write": both[1:]}.get(change, both)


async def test_parallel_workers_store_each_fact_once(make_rig: MakeRig, chat: OpenAIChat) -> None:
    async with make_rig(chat, **OFF, EXTRACTION_BATCH_TOKENS=100) as rig:
        await rig.append("s", *(f"Fact number {number} is known" for number in range(40)))
        made = await gathered(extract_facts(rig.rt, rig.sid(REF)) for _ in range(4))
        assert sum(made) == 40
        assert len(await facts(rig)) == 40


async def test_parallel_extraction_and_promotion_lose_no_message(make_rig: MakeRig, chat: OpenAIChat) -> None:
    """Each trims the journal only up to the messages that the other has also processed."""
    async with make_rig(chat, EXTRACTION_DEBOUNCE_SECONDS="0", EXTRACTION_BATCH_TOKENS=100) as rig:

        async def write() -> None:
            for start in range(0, 200, 10):
                await rig.append("s", *(f"Fact number {number} is known" for number in range(start, start + 10)))

        async def work(kind: DueKind) -> None:
            for _ in range(40):
                await rig.work(kind)
                await asyncio.sleep(0)

        await gathered([write(), work(X), work(X), work(DueKind.SESSION), work(DueKind.SESSION)])
        await rig.work(DueKind.SESSION, X)
        assert len(await facts(rig)) == 200
        assert len(await rig.stored()) == 400
        journal = rig.keys.session(rig.sid(REF)).journal_list
        assert await rig.rt.client.llen(journal) == 10


async def test_huge_message_does_not_exceed_a_small_context(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat.context.note_limit(4000)
    async with make_rig(chat, **OFF) as rig:
        for _ in range(3):
            await rig.append("s", "fig tree " * 20_000 + str(_), "Anna lives in Oslo" + str(_))
        await rig.work(DueKind.SESSION, X)
        sizes = [rig.rt.counter.count(json.dumps(body["messages"])) for body in lookalike.bodies("chat")]
        assert max(sizes) < 4000
        assert await cursor(rig) == 6


@pytest.mark.parametrize("without", ["chat", "setting"])
async def test_extraction_is_off_without_a_model_or_by_setting(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike, without: str
) -> None:
    opened: Callable[[], Any] = lambda: make_rig(None) if without == "chat" else make_rig(chat, ENABLE_DISCRETE_MEMORY_EXTRACTION="false")  # noqa: E731
    async with opened() as rig:
        await rig.append("s", "Anna lives in Oslo")
        assert await rig.marks(X) == {}
        await rig.work()
        assert lookalike.calls["chat"] == 0
        assert (await rig.rt[SessionService].get(SCOPE, "s")).session.messages[0].discrete_memory_extracted == "t"


async def test_fact_has_the_lowest_trust_of_its_cited_messages(
    make_rig: MakeRig, chat: OpenAIChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_rig(chat, **OFF) as rig:
        await rig.append("s", "I move in May")
        await rig.append("s", "To Oslo, then", role="assistant")
        answering(chat, monkeypatch, {"text": "Moves to Oslo in May", "messages": [1, 2]})
        await rig.work()
        await rig.append("t", "I bake bread")
        answering(chat, monkeypatch, {"text": "Bakes bread", "messages": [1]})
        await rig.work()
        assert [(one.source_class, one.trust) for one in await facts(rig)] == [("user", 1.0), ("user", 0.7)]


async def test_text_inserted_by_a_harness_is_not_sent_to_the_model(
    make_rig: MakeRig, chat: OpenAIChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def structured(messages: Any, answer: Any, **__: Any) -> Any:
        asked.append(messages[-1].content)
        return answer.model_validate({"memories": []})

    monkeypatch.setattr(chat, "structured", structured)
    async with make_rig(chat, **OFF) as rig:
        await rig.append("s", "<system-reminder>The user likes jazz</system-reminder>Anna lives in Oslo")
        await rig.work()
    assert ["Anna lives in Oslo" in text for text in asked] == [True]
    assert "jazz" not in asked[0]
