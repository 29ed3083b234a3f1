"""Test prompts for sessions that have no user.

They show only memories that have no user, unless the search specifies one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.recall.service import RecallService
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import BadInput
from agent_memory_client.models import EditMemoryRecordRequest, MemoryPromptRequest, SearchRequest, UpdateWorkingMemory
from tests.support.rig import SCOPE, MakeRig, Rig, record

ALL = {"the ferry of ann", "the ferry of nobody", "the ferry of ben"}


async def prompt(rig: Rig, **more: Any) -> set[str]:
    """Return the texts of the memories in a prompt."""
    body = MemoryPromptRequest.model_validate({"query": "Where is the ferry?", "long_term_search": True, **more})
    return {one.text for one in (await rig.rt[RecallService].prompt(SCOPE, body)).long_term_memories or []}


async def filled(rig: Rig) -> Rig:
    for user in ("ann", "ben", None):
        await rig.remember(record(f"the ferry of {user or 'nobody'}", user_id=user))
        body = UpdateWorkingMemory.model_validate({"messages": [{"role": "user", "content": "hello"}], "user_id": user})
        await rig.rt[SessionService].put(SCOPE, f"session of {user or 'nobody'}", body)
    return rig


@pytest.fixture
async def ferries(rig: Rig) -> Rig:
    return await filled(rig)


@pytest.mark.parametrize("search", [True, {"limit": 20}, {"filter": {"memory_type": "semantic"}}], ids=str)
@pytest.mark.parametrize("session", ["session of nobody", "a new session"])
async def test_prompt_without_a_user_shows_only_memories_without_a_user(ferries: Rig, session: str, search: Any) -> None:
    assert await prompt(ferries, session={"session_id": session}, long_term_search=search) == {"the ferry of nobody"}


async def test_prompt_uses_the_user_of_the_stored_session(ferries: Rig) -> None:
    assert await prompt(ferries, session={"session_id": "session of ann"}) == {"the ferry of ann"}


@pytest.mark.parametrize(
    ("search", "seen"),
    [
        ({"user_id": {"eq": "ann"}}, {"the ferry of ann"}),
        ({"user_id": "ann"}, {"the ferry of ann"}),
        ({"user_id": {"any": ["ann", "ben"]}}, {"the ferry of ann", "the ferry of ben"}),
        ({"user_id": {"ne": "ben"}}, ALL - {"the ferry of ben"}),
        ({"filter": {"not": {"user_id": "ben"}}}, ALL - {"the ferry of ben"}),
        ({"filter": {"or": [{"user_id": "ben"}, {"user_id": {"exists": False}}]}}, ALL - {"the ferry of ann"}),
        ({"user_id": {"exists": True}}, ALL - {"the ferry of nobody"}),
    ],
    # Each process iterates a set in another order.
    ids=lambda value: None if isinstance(value, set) else str(value),
)
async def test_explicit_user_filter_overrides_the_sessions_user(ferries: Rig, search: dict[str, Any], seen: set[str]) -> None:
    assert await prompt(ferries, session={"session_id": "session of nobody"}, long_term_search=search) == seen


@pytest.mark.parametrize("session", [None, {"session_id": "a new session"}], ids=str)
async def test_user_of_the_prompt_applies_if_no_session_has_one(ferries: Rig, session: dict[str, Any] | None) -> None:
    assert await prompt(ferries, session=session, user_id="ann") == {"the ferry of ann"}


async def test_prompt_user_selects_that_users_session(ferries: Rig) -> None:
    body = {"query": "q", "user_id": "ann", "session": {"session_id": "session of ann"}}
    shown = (await ferries.rt[RecallService].prompt(SCOPE, MemoryPromptRequest.model_validate(body))).messages
    assert len(shown) == 2


async def test_conflicting_users_in_one_prompt_are_refused(ferries: Rig) -> None:
    with pytest.raises(BadInput) as caught:
        await prompt(ferries, user_id="ann", session={"session_id": "s", "user_id": "ben"})
    assert caught.value.field == "user_id"


async def test_setting_allows_prompts_without_a_user_to_show_all_users(make_rig: MakeRig) -> None:
    async with make_rig(None, PROMPT_WITHOUT_USER_SEES_ALL_USERS="true") as rig:
        await filled(rig)
        assert await prompt(rig, session={"session_id": "session of nobody"}) == ALL
        assert await prompt(rig, session={"session_id": "session of ann"}) == {"the ferry of ann"}


async def test_search_without_a_user_filter_still_covers_all_users(ferries: Rig) -> None:
    found = await ferries.rt[SearchService].search(SCOPE, SearchRequest(text="ferry"))
    assert {one.text for one in found.memories} == ALL
    assert await prompt(ferries) == ALL


async def test_caller_limited_to_a_user_sees_that_users_memories(ferries: Rig) -> None:
    scope = scope_of_work(SCOPE.tenant, users=frozenset({"ann"}))
    body = MemoryPromptRequest.model_validate({"query": "ferry", "session": {"session_id": "a new session"}, "long_term_search": True})
    found = (await ferries.rt[RecallService].prompt(scope, body)).long_term_memories or []
    assert [one.text for one in found] == ["the ferry of ann"]


SEARCHES: list[Callable[[Rig], Awaitable[set[str]]]] = [
    lambda rig: search(rig, text="ferry", search_mode="semantic"),
    lambda rig: search(rig, text="ferry", search_mode="keyword"),
    lambda rig: search(rig, text="ferry", search_mode="hybrid"),
    lambda rig: search(rig),
    lambda rig: search(rig, history=True),
]


async def search(rig: Rig, **more: Any) -> set[str]:
    request = SearchRequest.model_validate({"user_id": {"exists": False}, **more})
    return {one.text for one in (await rig.rt[SearchService].search(SCOPE, request)).memories}


@pytest.mark.parametrize("ask", SEARCHES)
async def test_memories_without_a_user_can_be_searched_for(ferries: Rig, ask: Callable[[Rig], Awaitable[set[str]]]) -> None:
    assert await ask(ferries) == {"the ferry of nobody"}


async def test_patching_the_user_changes_whether_a_memory_has_none(ferries: Rig) -> None:
    await ferries.rt[MemoryService].patch(SCOPE, "the ferry of nobody", EditMemoryRecordRequest(user_id="ann"))
    await ferries.rt[MemoryService].patch(SCOPE, "the ferry of ben", EditMemoryRecordRequest(user_id=""))
    await ferries.index()
    assert await prompt(ferries, session={"session_id": "s"}) == {"the ferry of ben"}
