"""Test the "summary" strategy: one memory per session, updated with each batch."""

from __future__ import annotations

import json

from agent_memory.features.memories.service import MemoryService
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory_client.models import EditMemoryRecordRequest, MemoryStrategyConfig, UpdateWorkingMemory
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig

OFF = {"INDEX_ALL_MESSAGES_IN_LONG_TERM_MEMORY": "false", "EXTRACTION_DEBOUNCE_SECONDS": "0"}


async def begin(rig: Rig) -> None:
    strategy = MemoryStrategyConfig(strategy="summary", config={"max_summary_length": 50, "topics": ["boats"]})
    body = UpdateWorkingMemory(long_term_memory_strategy=strategy, user_id="u", namespace="n")
    await rig.rt[SessionService].put(SCOPE, "s", body)


async def test_each_batch_updates_the_one_thread_summary(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    async with make_rig(chat, **OFF) as rig:
        await begin(rig)
        for text, summary in (("I bought a canoe", "User bought a canoe."), ("It is green", "User bought a green canoe.")):
            lookalike.scripted.raw = {text: json.dumps({"summary": summary, "topics": ["canoe"]})}
            await rig.append("s", text, user_id="u", namespace="n")
            await rig.work(DueKind.EXTRACTION)
        (one,) = await rig.stored()
        assert (one.text, one.namespace, one.user_id, one.extraction_strategy) == ("User bought a green canoe.", "n", "u", "summary")
        assert len(one.id) == len("thread_summary_") + 24
        assert one.topics == ["boats", "canoe", "thread-summary"]
        assert one.extracted_from == ["s-I bought a canoe", "s-It is green"]
        assert (one.metadata["message_count"], one.metadata["summary_version"]) == (2, "thread-summary-v1")
        assert "User bought a canoe." in lookalike.bodies("chat")[-1]["messages"][-1]["content"]
        assert lookalike.calls["chat"] == 2
        histories = {key for key in await rig.raw_keys() if key.startswith("h:")}
        assert len(histories) == 1, "what it said before is its history"


async def test_pinned_thread_summary_is_not_updated(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    async with make_rig(chat, **OFF) as rig:
        await begin(rig)
        lookalike.scripted.raw = {"canoe": json.dumps({"summary": "User bought a canoe.", "topics": []})}
        await rig.append("s", "I bought a canoe", user_id="u", namespace="n")
        await rig.work(DueKind.EXTRACTION)
        (one,) = await rig.stored()
        await rig.rt[MemoryService].patch(SCOPE, one.id, EditMemoryRecordRequest(pinned=True))
        await rig.append("s", "The canoe sank", user_id="u", namespace="n")
        await rig.work(DueKind.EXTRACTION)
        assert [record.text for record in await rig.stored()] == ["User bought a canoe."]
        assert (await rig.rt.outbox.backlog())[DueKind.EXTRACTION].pending == 0
