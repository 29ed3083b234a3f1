"""The memory prompt stays in the scope of the session that it is made for."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.features.recall.service import RecallService
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.errors import UnsupportedRequest
from agent_memory_client.models import MemoryPromptRequest, UpdateWorkingMemory
from tests.support.rig import SCOPE, Rig, record


async def prompt(rig: Rig, query: str = "Where is the ferry?", **more: Any) -> list[str]:
    """The texts of the memories of a prompt."""
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
async def test_a_session_brings_its_own_users_memories_only(two_users: Rig, given: dict[str, str], wanted: Any) -> None:
    """Also when it was found by its id alone."""
    session = {"session_id": "session of ann", **given}
    assert await prompt(two_users, session=session, long_term_search=wanted) == ["the ferry of ann"]


async def test_a_search_that_names_its_own_user_gets_that(two_users: Rig) -> None:
    session = {"session_id": "session of ann"}
    assert await prompt(two_users, session=session, long_term_search={"user_id": {"eq": "ben"}}) == ["the ferry of ben"]


async def test_a_session_that_is_not_there(two_users: Rig) -> None:
    session = {"session_id": "unknown", "user_id": "ben"}
    assert await prompt(two_users, session=session, long_term_search=True) == ["the ferry of ben"]
    assert await prompt(two_users, session={"session_id": "unknown"}) == []
    with pytest.raises(UnsupportedRequest):
        await prompt(two_users)
    with pytest.raises(UnsupportedRequest):
        await prompt(two_users, long_term_search=False)
