"""Test that a memory prompt stays within its session's scope."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.features.recall.service import RecallService
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.errors import BadInput, UnsupportedRequest
from agent_memory_client.models import MemoryPromptRequest, UpdateWorkingMemory
from tests.support.rig import SCOPE, Rig, record


async def prompt(rig: Rig, query: str = "Where is the ferry?", **more: Any) -> list[str]:
    """Return the texts of the memories in a prompt."""
    answer = await rig.rt[RecallService].prompt(SCOPE, MemoryPromptRequest.model_validate({"query": query, **more}))
    return [one.text for one in answer.long_term_memories or []]


@pytest.fixture
async def two_users(rig: Rig) -> Rig:
    for user in ("ann", "ben"):
        await rig.remember(record(f"the ferry of {user}", user_id=user, namespace="n"))
        messages = [{"role": "user", "content": f"hello from {user}"}]
        body = {"messages": messages, "user_id": user, "namespace": "n"}
        await rig.rt[SessionService].put(SCOPE, f"session of {user}", UpdateWorkingMemory.model_validate(body))
    return rig


@pytest.mark.parametrize("given", [{"user_id": "ann", "namespace": "n"}, {"user_id": "ann"}, {"namespace": "n"}, {}], ids=str)
@pytest.mark.parametrize("wanted", [True, {"limit": 10}], ids=str)
async def test_prompt_of_a_session_shows_only_memories_of_its_user(two_users: Rig, given: dict[str, str], wanted: Any) -> None:
    """This holds even if the request specifies the session only by id."""
    session = {"session_id": "session of ann", **given}
    assert await prompt(two_users, session=session, long_term_search=wanted) == ["the ferry of ann"]


async def test_user_filter_of_the_search_overrides_the_sessions_user(two_users: Rig) -> None:
    session = {"session_id": "session of ann"}
    assert await prompt(two_users, session=session, long_term_search={"user_id": {"eq": "ben"}}) == ["the ferry of ben"]


async def test_prompt_of_an_unknown_session_uses_its_user_only(two_users: Rig) -> None:
    session = {"session_id": "unknown", "user_id": "ben"}
    assert await prompt(two_users, session=session, long_term_search=True) == ["the ferry of ben"]
    assert await prompt(two_users, session={"session_id": "unknown"}) == []
    with pytest.raises(UnsupportedRequest):
        await prompt(two_users)
    with pytest.raises(UnsupportedRequest):
        await prompt(two_users, long_term_search=False)
    with pytest.raises(BadInput, match="without a session"):
        await prompt(two_users, session=session, shown_messages={"session_id": "unknown", "message_ids": []})
