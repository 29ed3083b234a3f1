"""Test that a feature can add a section to the memory prompt.

The section uses the prompt's single pipeline and stays within the token budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from agent_memory.features.extraction.rule_store import RuleStore
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.recall.formats import Prompt, text_message
from agent_memory.features.recall.sections.session import SessionSection
from agent_memory.features.recall.service import RecallService
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.prompt_sections import PER_MESSAGE, PromptAsk, SectionText, SessionMessages
from agent_memory.foundation.storage.connection import Pipe, PipelineReader
from agent_memory_client.models import MemoryPromptRequest
from tests.support.commands import commands_of
from tests.support.rig import SCOPE, Rig


@dataclass
class Profile:
    """A section that shows as many words from a user's key as it has tokens.

    One object implements all steps.
    """

    prefix: str
    ask: PromptAsk | None = None
    text: str = ""

    async def open_section(self, ask: PromptAsk) -> Profile | None:
        return None if ask.session is None or ask.session.user_id is None else Profile(self.prefix, ask)

    def queue_section(self, pipe: Pipe) -> int:
        assert self.ask is not None
        assert self.ask.session is not None
        pipe.get(f"{self.prefix}{self.ask.session.user_id}")
        return 1

    async def load_section(self, replies: Sequence[Any], session: SessionMessages | None) -> Profile:
        (reply,) = replies
        return Profile(self.prefix, self.ask, (reply or b"").decode())

    def fit_section(self, tokens: int | None) -> Profile:
        return Profile(self.prefix, self.ask, " ".join(self.text.split()[:tokens]))

    def count_tokens(self) -> int:
        return len(self.text.split())

    def render_section(self, messages: SessionMessages | None) -> SectionText:
        return SectionText([text_message("system", self.text)])


@pytest.fixture
async def recall(rig: Rig) -> RecallService:
    prefix = f"{rig.keys.root}profile:"
    await rig.rt.client.set(f"{prefix}ann", "likes plums and tea")
    for user in ("ann", "ben"):
        await rig.append(f"of-{user}", "I am late", user_id=user)
    session = SessionSection(rig.settings, rig.rt[SessionStore], rig.rt.counter)
    return RecallService(PipelineReader(rig.rt.client), session, Profile(prefix), rig.rt.counter, rig.rt[RuleStore], rig.rt[SearchService])


async def texts(recall: RecallService, session_id: str, user: str | None = None, **more: Any) -> list[str]:
    body = MemoryPromptRequest.model_validate({"query": "What?", "session": {"session_id": session_id, "user_id": user}, **more})
    prompt: Prompt = await recall.build_prompt(SCOPE, body)
    return [message["content"]["text"] for message in prompt.messages]


async def test_section_is_read_in_the_prompts_pipeline_and_shown_before_the_query(
    rig: Rig, recall: RecallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = commands_of(rig, monkeypatch)
    assert await texts(recall, "of-ann", "ann") == ["I am late", "likes plums and tea", "What?"]
    assert len(sent) == 1


async def test_a_section_is_cut_to_its_share_of_the_tokens(rig: Rig, recall: RecallService) -> None:
    await rig.rt.client.set(f"{rig.keys.root}profile:ben", " ".join(["plums"] * 60))
    left = 64 - rig.rt.counter.count("What?") - PER_MESSAGE
    said, section, _ = await texts(recall, "of-ben", "ben", max_tokens=64)
    assert said == "I am late"
    assert set(section.split()) == {"plums"}
    assert left * 0.6 < len(section.split()) < left * 0.9, "what the parts before it and the messages leave is its, too"


async def test_session_found_by_id_alone_shows_the_section_of_its_user(recall: RecallService) -> None:
    assert await texts(recall, "of-ann") == ["I am late", "likes plums and tea", "What?"]
    assert await texts(recall, "of-ben") == ["I am late", "", "What?"]
    assert await texts(recall, "of-nobody") == ["What?"]
