"""Test context blocks that a harness adds to user messages.

The session stores them, but they do not become memories.
"""

from __future__ import annotations

import time

import pytest

from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.recall.service import RecallService
from agent_memory.features.sessions.service import SessionService
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory.foundation.text.cleaning.context_blocks import ContextBlocks
from agent_memory_client.models import AppendMessagesRequest, CreateMemoryRecordRequest, MemoryPromptRequest, SearchRequest
from agent_memory_worker.sessions.summarize import summarize_session
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig

BLOCKS = ContextBlocks("system-reminder,relevant-memories")
FACT = "I bought a saxophone yesterday."
JAZZ = "The user likes jazz (2025)"


@pytest.mark.parametrize(
    ("text", "outside"),
    [
        (f"<relevant-memories>\n- {JAZZ}\n</relevant-memories>\n\n{FACT}", FACT),
        (f"{FACT}\n<System_Reminder level='3'>{JAZZ}</system_reminder>", FACT),
        (f"<system-reminder>a<relevant-memories>b</relevant-memories>c</system-reminder>{FACT}", FACT),
        (f"<system-reminder>a</system-reminder>{FACT}<system-reminder>b</system-reminder>", FACT),
        (f"<system-reminder/>{FACT}", FACT),
        (f"<system-reminder>{JAZZ}</system-reminder>", ""),
        (f"<system-reminder>\n{FACT}", f"<system-reminder>\n{FACT}"),
        (f"What is <system-reminder>? {FACT}", f"What is <system-reminder>? {FACT}"),
        (f"</system-reminder>{FACT}", f"</system-reminder>{FACT}"),
        (f"<system-reminder> {FACT} <relevant-memories>b</relevant-memories>", f"<system-reminder> {FACT}"),
        (f"<article>{FACT}</article> 1 < 2 > 0", f"<article>{FACT}</article> 1 < 2 > 0"),
    ],
)
def test_only_closed_blocks_with_context_tags_are_context(text: str, outside: str) -> None:
    assert BLOCKS.outside(text) == outside


@pytest.mark.parametrize("part", ["<system-reminder>", "<system-reminder ", "<system-reminder></relevant-memories>", "<a", "</a>"])
def test_hostile_tags_take_linear_time(part: str) -> None:
    began = time.process_time()
    BLOCKS.outside(part * (1_000_000 // len(part)))
    assert time.process_time() - began < 5


async def texts(rig: Rig) -> list[str]:
    found = await rig.rt[SearchService].search(SCOPE, SearchRequest.model_validate({"user_id": {"eq": "ana"}}))
    return sorted(memory.text for memory in found.memories)


async def append(rig: Rig, *contents: str) -> None:
    messages = [{"role": "user", "content": content} for content in contents]
    await rig.rt[SessionService].append(SCOPE, "s", AppendMessagesRequest.model_validate({"user_id": "ana", "messages": messages}))


async def test_context_block_is_stored_in_the_session_but_not_remembered(rig: Rig) -> None:
    said = f"<relevant-memories>\n- {JAZZ}\n</relevant-memories>\n\n{FACT}"
    await append(
        rig, said, f"<task-notification>{JAZZ}</task-notification>", f"<system-reminder>{JAZZ} I live in Oslo.", "I moved to Bergen."
    )
    body = MemoryPromptRequest.model_validate(
        {"query": "Who likes jazz or bought a saxophone?", "user_id": "ana", "long_term_search": True}
    )
    waiting = [memory.text for memory in (await rig.rt[RecallService].prompt(SCOPE, body)).long_term_memories or []]
    assert FACT in waiting
    assert said not in waiting
    await rig.work()
    assert await texts(rig) == sorted([FACT, f"<system-reminder>{JAZZ} I live in Oslo.", "I moved to Bergen."])
    session = (await rig.rt[SessionService].get(SCOPE, "s", user_id="ana")).session
    assert session.messages[0].content == said


async def test_context_tags_are_configurable(make_rig: MakeRig) -> None:
    async with make_rig(None, CONTEXT_TAGS="my-context") as rig:
        await append(rig, f"<my_context>{JAZZ}</my_context> {FACT}", "<system-reminder>I live in Oslo.</system-reminder>")
        await rig.work()
        assert await texts(rig) == sorted([FACT, "<system-reminder>I live in Oslo.</system-reminder>"])


@pytest.mark.parametrize("with_model", [False, True])
async def test_summary_does_not_repeat_context_blocks(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike, with_model: bool) -> None:
    async with make_rig(chat if with_model else None) as rig:
        said = [
            f"<system-reminder>The pin of the {n}. door is secret{n}</system-reminder>I painted the {n}. door green." for n in range(60)
        ]
        await rig.append("s", *said, context_window_max=1000)
        assert await summarize_session(rig.rt, rig.sid(SessionRef("s")))
        state = await rig.rt[SessionStore].get(SCOPE, SessionRef("s"))
        assert state is not None
        assert "door green" in (state.context or "")
        assert "secret" not in (state.context or "")
        assert "secret" not in str(lookalike.bodies("chat"))


async def test_context_tags_in_a_created_memory_are_kept(rig: Rig) -> None:
    stated = f"<system-reminder>{JAZZ}</system-reminder> {FACT}"
    body = CreateMemoryRecordRequest.model_validate({"memories": [{"id": "m", "user_id": "ana", "text": stated}]})
    await rig.rt[MemoryService].create(SCOPE, body)
    await rig.work()
    assert await texts(rig) == [stated]
