"""Test that extraction costs are bounded. Sending a memory prompt back adds no memories."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from agent_memory.foundation.core.settings import load_settings
from agent_memory_client import ClientMemoryRecord, MemoryAPIClient, MemoryClientConfig
from agent_memory_client.models import MemoryMessage
from tests.support.lookalike import Lookalike
from tests.support.stack import stack

ROUNDS = 20
QUESTION = "What do I collect?"


@pytest.fixture(scope="module")
async def served(redis_url: str) -> AsyncGenerator[tuple[MemoryAPIClient, Lookalike], None]:
    model = Lookalike(dimensions=256).start()
    settings = load_settings(
        KEY_PREFIX="costs",
        OPENAI_BASE_URL=model.url,
        OPENAI_API_KEY="sk-test-0000",
        EMBEDDING_MODEL="some-embeddings",
        EMBEDDING_DIMENSIONS=256,
        EXTRACTION_DEBOUNCE_SECONDS=3600,
        COMPACTION_EVERY_MINUTES=0,
    )
    try:
        async with stack(settings, redis_url) as url, MemoryAPIClient(MemoryClientConfig(base_url=url, max_retries=0)) as api:
            yield api, model
    finally:
        model.stop()


async def everything(api: MemoryAPIClient, user: str) -> dict[str, Any]:
    """Return all of a user's current memories, including messages, by id."""
    found = api.search_all_long_term_memories("", user_id={"eq": user}, batch_size=100)
    return {record.id: (record.text, record.extracted_from) async for record in found}


async def flushed(api: MemoryAPIClient, session: str, user: str) -> None:
    assert (await api.flush_working_memory(session, user_id=user, wait=20)).status == "ok"


async def test_memory_prompts_sent_back_add_no_memory(served: tuple[MemoryAPIClient, Lookalike]) -> None:
    api, _ = served
    said = ["I collect stamps from Portugal.", "My favourite stamp shows a caravel.", QUESTION]
    for number, text in enumerate(said):
        reply = MemoryMessage(role="assistant", content=f"Answer {number}: noted, that is a lovely thing to have.")
        await api.append_messages("talk", [MemoryMessage(role="user", content=text), reply], user_id="fed")
    await flushed(api, "talk", "fed")
    before = await everything(api, "fed")
    assert len(before) >= 10, "messages and facts"
    for number in range(ROUNDS):
        prompt = await api.memory_prompt(QUESTION, session_id="elsewhere", user_id="fed", long_term_search={"limit": 5 + number % 5})
        assert prompt.long_term_memories
        back = [MemoryMessage(role=one["role"], content=one["content"]) for one in prompt.to_openai()]
        listed = next(one.content for one in back if "Long term memories" in one.content)
        quoted = "\n".join(f"> {line}" for line in listed.splitlines() if line.startswith((" - ", "- ")))
        back.append(MemoryMessage(role="assistant", content=quoted))
        # Like a program with a window: it stores everything that it showed to its model in the session again, under new ids.
        await api.append_messages("talk", back[-12:] if number % 2 else [one for one in back if one.role != "user"][-4:], user_id="fed")
        await flushed(api, "talk", "fed")
    assert await everything(api, "fed") == before


async def test_a_hundred_creates_cost_at_most_five_embedding_calls_and_two_model_calls(served: tuple[MemoryAPIClient, Lookalike]) -> None:
    api, model = served
    model.forget()
    records = [ClientMemoryRecord(id=f"cost-{n}", text=f"Anna keeps item number {n} in drawer {n * 7}", user_id="cost") for n in range(100)]
    await api.create_long_term_memory(records, wait=20)
    assert len(await everything(api, "cost")) == 100
    assert 1 <= model.calls["embeddings"] <= 5
    assert model.calls["chat"] <= 2
