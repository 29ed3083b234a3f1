"""Test session messages that do not become memories."""

from __future__ import annotations

import pytest

from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.text.normalization import QUESTION
from agent_memory_client.models import MemoryMessage, UpdateWorkingMemory
from agent_memory_worker.sessions.promote import promote_session
from tests.support.rig import SCOPE, Rig

REF = SessionRef("s")


async def _promoted(rig: Rig, *said: tuple[str, str]) -> dict[str, bool]:
    """Promote (role, text) messages. Return the memories, and whether each is a question."""
    messages = [MemoryMessage(role=role, content=text, id=f"m{number}") for number, (role, text) in enumerate(said)]
    await rig.rt[SessionService].put(SCOPE, "s", UpdateWorkingMemory(messages=messages))
    await promote_session(rig.rt, rig.sid(REF))
    return {memory.text: memory.metadata.get(QUESTION) is True for memory in await rig.stored()}


@pytest.mark.parametrize("role", ["system", "developer", "tool", "function"])
async def test_messages_of_programs_and_tools_are_not_remembered(rig: Rig, role: str) -> None:
    assert await _promoted(rig, (role, "Ana lives in Oslo."), ("user", "I live in Rome.")) == {"I live in Rome.": False}


async def test_small_talk_is_skipped_remember_requests_unwrapped_and_questions_marked(rig: Rig) -> None:
    said = ["Remember that I like figs", "please forget what I said about my job", "asdf", "gtg bye", "你好", "Where do I live?", "No."]
    assert await _promoted(rig, *[("user", text) for text in said]) == {"I like figs": False, "Where do I live?": True, "No.": False}
