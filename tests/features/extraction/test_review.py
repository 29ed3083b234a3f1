"""Test that with REVIEW_SUPERSESSIONS, a conversation does not supersede any fact by itself.

A reviewer approves or rejects each proposal.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from agent_memory.foundation.core.settings import load_settings
from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from agent_memory_client.models import MemoryMessage
from tests.support.lookalike import Lookalike
from tests.support.stack import stack


@pytest.fixture(scope="module")
async def served(redis_url: str) -> AsyncGenerator[tuple[MemoryAPIClient, Lookalike]]:
    model = Lookalike().start()
    model.scripted.silent = True
    options = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-test-0000", "EMBEDDING_PROVIDER": "local"}
    settings = load_settings(KEY_PREFIX="review", REVIEW_SUPERSESSIONS=True, EXTRACTION_DEBOUNCE_SECONDS=3600, **options)
    try:
        async with stack(settings, redis_url) as url, MemoryAPIClient(MemoryClientConfig(base_url=url, max_retries=0)) as api:
            yield api, model
    finally:
        model.stop()


async def _current(api: MemoryAPIClient, user: str) -> list[str]:
    found = await api.search_long_term_memory("", user_id={"eq": user}, memory_type={"eq": "semantic"})
    return [one.text for one in found.memories]


@pytest.mark.parametrize("end", ["approve", "reject"])
async def test_supersession_waits_for_review_until_approved(served: tuple[MemoryAPIClient, Lookalike], end: str) -> None:
    api, model = served
    old, new = f"{end} lives in Turin", f"{end} lives in Oslo"
    for said, text in ((f"I am {end} and live in Turin", old), (f"{end} here, I moved to Oslo", new)):
        model.scripted.facts[said] = [{"text": text, "type": "semantic", "slot": "home_city"}]
        model.scripted.decisions[new] = ["SUPERSEDE", old]
        await api.append_messages("talk", [MemoryMessage(role="user", content=said)], user_id=end)
        assert (await api.flush_working_memory("talk", user_id=end, wait=20)).status == "ok"
    assert await _current(api, end) == [old], "nothing is ended by itself"
    (proposal,) = (await api.list_changes(state="proposed", user_id=end)).changes
    changed = [(one.before and one.before.text, one.after and one.after.text) for one in proposal.memories]
    assert changed == [(None, new), (old, None)], "the new fact, and the one that it would end"
    done = await (api.approve_change if end == "approve" else api.reject_change)(proposal.id)
    assert done.state == ("applied" if end == "approve" else "rejected")
    assert await _current(api, end) == ([new] if end == "approve" else [old])
    assert (await api.list_changes(state="proposed", user_id=end)).total == 0
    if end == "approve":
        await api.undo_change(proposal.id)
        assert await _current(api, end) == [old]
