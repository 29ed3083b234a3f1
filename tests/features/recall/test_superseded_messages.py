"""Test that a prompt marks a message whose fact was superseded, until it is undone or repeated."""

from __future__ import annotations

from datetime import UTC, datetime

from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.recall.service import RecallService
from agent_memory.foundation.core.clock import iso
from agent_memory_client.models import CreateMemoryRecordRequest, ExtractedMemoryRecord, MemoryPromptRequest
from tests.support.rig import SCOPE, Rig, record


async def state(rig: Rig, text: str, message: str | None, minute: int) -> None:
    """Store a fact about the employer, as if extracted from a message."""
    more = {} if message is None else {"session_id": "s", "extracted_from": [f"s-{message}"]}
    at = iso(datetime(2026, 5, 4, 12, minute, tzinfo=UTC))
    fact = record(text, user_id="u", slot="employer", created_at=at, **more).model_dump(exclude_none=True)
    await rig.rt[MemoryService].create(SCOPE, CreateMemoryRecordRequest(memories=[ExtractedMemoryRecord.model_validate(fact)]))
    await rig.work()


async def lines(rig: Rig) -> list[str]:
    body = {"query": "Where do I work?", "long_term_search": {"user_id": {"eq": "u"}}}
    prompt = await rig.rt[RecallService].build_prompt(SCOPE, MemoryPromptRequest.model_validate(body))
    return [line.strip() for line in prompt.messages[0]["content"]["text"].split("\n") if "; " in line]


def line_of(shown: list[str], text: str) -> str:
    return next((line for line in shown if text in line), "")


async def test_superseded_fact_marks_its_message_until_undone(rig: Rig) -> None:
    await rig.append("s", "I work at the Acme bakery", user_id="u")
    await rig.work()
    await state(rig, "Works at the Acme bakery", "I work at the Acme bakery", 1)
    shown = await lines(rig)
    assert line_of(shown, "Works at the Acme")
    assert not line_of(shown, "user said:"), "the fact stands for its message"
    await state(rig, "Works at the harbour office", None, 2)
    shown = await lines(rig)
    assert "harbour office" in shown[0], "the current fact comes first"
    assert ", no longer true since 4 May 2026; message] user said: I work at the Acme bakery" in line_of(shown, "user said:")
    assert not line_of(shown, "] Works at the Acme")
    history = rig.rt[HistoryService]
    (change,) = [each for each in (await history.read_changes(SCOPE, {}, None, 0, 10)).changes if each.kind == "supersede"]
    undone = await history.undo_by_id(SCOPE, change.id)
    shown = await lines(rig)
    assert line_of(shown, "Works at the Acme bakery")
    assert not line_of(shown, "no longer true")
    await history.undo_by_id(SCOPE, undone.id)
    assert "no longer true since" in line_of(await lines(rig), "user said:")


async def test_only_messages_of_the_superseded_fact_are_marked(rig: Rig) -> None:
    await rig.append("s", "I work at the Acme bakery", "My work begins at six", user_id="u")
    await rig.work()
    await state(rig, "Works at the Acme bakery", "I work at the Acme bakery", 1)
    await state(rig, "Works at the harbour office", None, 2)
    assert "no longer true" not in line_of(await lines(rig), "begins at six")
