"""Test that prompts always show who said a message: before promotion, after it, and after edits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from agent_memory.features.memories.service import MemoryService
from agent_memory.features.recall.service import RecallService
from agent_memory.features.sessions.service import SessionService
from agent_memory_client.models import AppendMessagesRequest, EditMemoryRecordRequest, MemoryMessage, MemoryPromptRequest
from tests.support.rig import SCOPE, Rig


async def say(rig: Rig, session_id: str, text: str, role: str = "user", **more: Any) -> MemoryMessage:
    message = MemoryMessage.model_validate({"role": role, "content": text, **more})
    await rig.rt[SessionService].append(SCOPE, session_id, AppendMessagesRequest(messages=[message], user_id="u"))
    return message


async def shown(rig: Rig, query: str, **search: Any) -> list[str]:
    body = MemoryPromptRequest.model_validate({"query": query, "long_term_search": {"user_id": {"eq": "u"}, **search}})
    prompt = await rig.rt[RecallService].build_prompt(SCOPE, body)
    return [line for line in prompt.messages[0]["content"]["text"].split("\n") if line.lstrip().startswith("- [")]


async def test_memory_shows_its_speaker_before_and_after_promotion(rig: Rig) -> None:
    await say(rig, "s", "The violin is from Cremona", name="Ann")
    await say(rig, "s", "A violin from Cremona is worth a lot", "assistant")
    await say(rig, "s", "My violin needs new strings")
    expected = ["Ann said: The violin", "assistant said: A violin", "user said: My violin"]
    for promoted in (False, True):
        if promoted:
            await rig.work()
        lines = await shown(rig, "the violin")
        assert [any(start in line for line in lines) for start in expected] == [True] * 3, lines


async def test_same_text_by_two_named_speakers_is_two_memories(rig: Rig) -> None:
    for name in ("Ann", "Ann", "Ben"):
        await say(rig, f"of {name}", "I play the violin", name=name)
        await rig.work()
    assert sorted(record.metadata["name"] for record in await rig.stored()) == ["Ann", "Ben"]


async def test_prompt_shows_the_day_of_an_edited_text(rig: Rig) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=400)
    message = await say(rig, "s", "My violin is from Cremona", created_at=long_ago.isoformat())
    await rig.work()
    assert message.content in (await shown(rig, "violin"))[0]
    assert " 1 year ago" in (await shown(rig, "violin"))[0] or "months ago" in (await shown(rig, "violin"))[0]
    (memory,) = await rig.stored()
    service = rig.rt[MemoryService]
    await service.patch(SCOPE, memory.id, EditMemoryRecordRequest(topics=["music"]))
    assert ", today;" not in (await shown(rig, "violin"))[0], "other words, not other tags"
    await service.patch(SCOPE, memory.id, EditMemoryRecordRequest(text="My violin is from Mittenwald"))
    assert ", today; message] user said: My violin is from Mittenwald" in (await shown(rig, "violin"))[0]
