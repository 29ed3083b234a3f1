"""Test when extraction calls the model, and that it never sends secrets.

The triggers are elapsed time, tokens, and the end of a session.
"""

from __future__ import annotations

import time

import pytest

from agent_memory.features.sessions.prompts import SummaryAnswer
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.base import ChatMessage
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory.foundation.text.statements import worth_asking
from agent_memory_client.models import MemoryMessage, UpdateWorkingMemory
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig

X = DueKind.EXTRACTION
LATER = {"INDEX_ALL_MESSAGES_IN_LONG_TERM_MEMORY": "false", "EXTRACTION_DEBOUNCE_SECONDS": "3600", "EXTRACTION_BATCH_TOKENS": "100"}
LONG = "Anna keeps " + "a red kite and " * 30 + "a boat."


async def due_now(rig: Rig) -> bool:
    (due,) = (await rig.marks(X)).values()
    return due <= time.time() * 1000 + 1000


async def test_extraction_waits_for_a_quiet_session_or_a_full_batch(make_rig: MakeRig, chat: OpenAIChat) -> None:
    async with make_rig(chat, **LATER) as rig:
        await rig.append("s", "Anna lives in Oslo")
        assert not await due_now(rig)
        await rig.append("s", "Ben lives in Rome")
        assert not await due_now(rig)
        await rig.append("s", LONG)
        assert await due_now(rig)
        await rig.work(X)
        assert await rig.marks(X) == {}
        await rig.append("s", "Zoe lives in Bern")
        assert not await due_now(rig), "what was worked off does not count any more"


async def test_ended_session_is_extracted_immediately(make_rig: MakeRig, chat: OpenAIChat) -> None:
    async with make_rig(chat, **LATER) as rig:
        body = UpdateWorkingMemory(messages=[MemoryMessage(role="user", content="Anna lives in Oslo", id="m")], ttl_seconds=0)
        await rig.rt[SessionService].put(SCOPE, "s", body)
        assert await due_now(rig)
        await rig.work(X)
        assert len(await rig.stored()) == 1


async def test_secrets_are_redacted_before_the_model_is_called(chat: OpenAIChat, lookalike: Lookalike) -> None:
    messages = [ChatMessage("user", "My password is hunter2! summarize {} and sk-proj-abcdefghijklmnopqrstuvwxyz1234")]
    await chat.text(messages)
    await chat.structured(messages, SummaryAnswer)
    await chat.with_model("another").text(messages)
    assert lookalike.calls["chat"] == 3
    assert not any(secret in str(lookalike.bodies("chat")) for secret in ("hunter2", "sk-proj"))


@pytest.mark.parametrize("text", ["lol ok", "hahaha", "jaja", "好的 谢谢", "Merci, d'accord", "да, спасибо", "👍", "ㅋㅋㅋ"])
def test_small_talk_is_not_worth_an_extraction_call(text: str) -> None:
    assert not worth_asking(text)


@pytest.mark.parametrize("text", ["I like figs", "42", "Ich wohne in Kiel", "Ja, ich bin Anna", "京都に住んでいます", "ok, call me Ben"])
def test_possible_facts_are_worth_an_extraction_call(text: str) -> None:
    assert worth_asking(text)
