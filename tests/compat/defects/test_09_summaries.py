"""Test defect 9: summaries were in reverse order, replaced by "NONE", or missing messages."""

from __future__ import annotations

import json

import pytest

from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.errors import ModelAnswerInvalid
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory_client.models import UpdateWorkingMemory
from agent_memory_worker.sessions.summarize import summarize_session
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig

OFF = {"INDEX_ALL_MESSAGES_IN_LONG_TERM_MEMORY": "false", "ENABLE_DISCRETE_MEMORY_EXTRACTION": "false"}
TURNS = 60


async def talk(rig: Rig) -> str:
    """Create a session that exceeds its context window, and return its sid."""
    texts = [f"Turn {turn}: the red kite number {turn} flew over the hill behind our house." for turn in range(TURNS)]
    await rig.append("s", *texts, context_window_max=1000)
    return rig.sid(SessionRef("s"))


async def test_all_messages_are_summarized_in_order(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat.context.note_limit(3000)  # small enough for several calls
    async with make_rig(chat, **OFF) as rig:
        assert await summarize_session(rig.rt, await talk(rig))
        kept = len((await rig.rt[SessionService].get(SCOPE, "s")).session.messages)
    told: list[str] = []
    for body in lookalike.bodies("chat"):
        told += [json.loads(line)["text"] for line in body["messages"][-1]["content"].splitlines() if line.startswith('{"n": ')]
    assert len(lookalike.bodies("chat")) > 1
    assert [int(text.split(":")[0].removeprefix("Turn ")) for text in told] == list(range(TURNS - kept))


@pytest.mark.parametrize("answer", ["NONE", "n/a", " . "])
async def test_refusal_of_the_model_never_replaces_a_summary(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike, answer: str
) -> None:
    async with make_rig(chat, **OFF) as rig:
        await rig.rt[SessionService].put(SCOPE, "s", UpdateWorkingMemory(context="Anna keeps kites."))
        sid = await talk(rig)
        lookalike.scripted.raw["Leaving messages"] = json.dumps({"summary": answer})
        with pytest.raises(ModelAnswerInvalid):
            await summarize_session(rig.rt, sid)
        session = (await rig.rt[SessionService].get(SCOPE, "s")).session
        assert (session.context, len(session.messages)) == ("Anna keeps kites.", TURNS)
