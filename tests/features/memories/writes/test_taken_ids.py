"""Test predictable ids that another owner took in advance.

A worker still stores the session's memories.
"""

from __future__ import annotations

import json

from agent_memory.features.memories.service import MemoryService
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory_client.models import CreateMemoryRecordRequest, MemoryRecord, MemoryStrategyConfig, UpdateWorkingMemory
from agent_memory_worker.extraction.thread_strategy import thread_memory_id
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig

OFF = {"INDEX_ALL_MESSAGES_IN_LONG_TERM_MEMORY": "false", "EXTRACTION_DEBOUNCE_SECONDS": "0"}
ADA = {"user_id": "ada", "namespace": "work"}


async def take(rig: Rig, memory_id: str) -> None:
    taken = {"id": memory_id, "text": "Bob was first", "user_id": "bob", "namespace": "work"}
    await rig.rt[MemoryService].create(SCOPE, CreateMemoryRecordRequest.model_validate({"memories": [taken]}))


async def stored_of(rig: Rig) -> dict[str | None, list[MemoryRecord]]:
    found: dict[str | None, list[MemoryRecord]] = {}
    for one in await rig.stored():
        found.setdefault(one.user_id, []).append(one)
    return found


async def test_fact_is_stored_under_another_id_if_its_own_is_taken(make_rig: MakeRig, chat: OpenAIChat) -> None:
    async with make_rig(chat, **OFF) as rig:
        await rig.append("s", "Ada lives in Oslo", **ADA)
        await rig.work()
        ((fact,),) = (await stored_of(rig)).values()
        await rig.rt[SessionService].delete(SCOPE, "s", **ADA)
        await rig.rt[MemoryService].delete(SCOPE, [fact.id])
        await take(rig, fact.id)
        await rig.append("s", "Ada lives in Oslo", **ADA)
        await rig.work()
        found = await stored_of(rig)
        assert [(one.id, one.text) for one in found["bob"]] == [(fact.id, "Bob was first")]
        ((hers),) = found["ada"]
        assert (hers.text, hers.extracted_from) == (fact.text, fact.extracted_from)


async def test_thread_summary_is_stored_under_another_id_if_its_own_is_taken(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike
) -> None:
    """The summary contains nothing from the other owner's memory."""
    async with make_rig(chat, **OFF) as rig:
        await take(rig, thread_memory_id(SessionRef("s", "work", "ada")))
        strategy = MemoryStrategyConfig(strategy="summary")
        await rig.rt[SessionService].put(SCOPE, "s", UpdateWorkingMemory.model_validate({"long_term_memory_strategy": strategy, **ADA}))
        for text, summary in (("I bought a canoe", "Ada bought a canoe."), ("It is green", "Ada bought a green canoe.")):
            lookalike.scripted.raw = {text: json.dumps({"summary": summary, "topics": []})}
            await rig.append("s", text, **ADA)
            await rig.work(DueKind.EXTRACTION)
        found = await stored_of(rig)
        assert [one.text for one in found["bob"]] == ["Bob was first"]
        assert [one.text for one in found["ada"]] == ["Ada bought a green canoe."]
        assert not any("Bob was first" in json.dumps(body) for body in lookalike.bodies("chat"))
