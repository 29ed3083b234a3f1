"""Test defect 41: each extraction sent the entire thread again."""

from __future__ import annotations

from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from tests.support.lookalike import Lookalike
from tests.support.rig import MakeRig

TURNS = 40


async def test_extraction_prompt_size_depends_only_on_new_messages(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    lookalike.scripted.silent = True
    settings = {"INDEX_ALL_MESSAGES_IN_LONG_TERM_MEMORY": "false", "EXTRACTION_DEBOUNCE_SECONDS": "0"}
    async with make_rig(chat, **settings) as rig:
        for turn in range(TURNS):
            await rig.append("s", f"Turn {turn}: my drawer number {turn} holds {turn * 3} red buttons.")
            await rig.work(DueKind.EXTRACTION)
    prompts = [body["messages"][-1]["content"] for body in lookalike.bodies("chat")]
    assert len(prompts) == TURNS
    new = [prompt.split("New messages", 1)[1] for prompt in prompts]
    assert all(f"Turn {turn}:" in prompt and f"Turn {turn - 1}:" not in prompt for turn, prompt in enumerate(new))
    sizes = [len(prompt) for prompt in prompts]
    assert max(sizes[15:]) <= max(sizes[:15]) + 100, "bounded, however long the session is"
