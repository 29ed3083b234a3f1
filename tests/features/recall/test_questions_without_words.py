"""Test that a query with no content words recalls nothing.

A question about everything lists the known memories, most durable first.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.recall.service import RecallService
from agent_memory.foundation.core.errors import BadInput
from agent_memory_client.models import MemoryPromptRequest, MemoryRecordResult, SearchRequest
from tests.support.rig import SCOPE, Rig, record


async def recalled(rig: Rig, query: str, **search: Any) -> list[MemoryRecordResult]:
    body = {"query": query, "long_term_search": {"user_id": {"eq": "u"}, **search}}
    return (await rig.rt[RecallService].prompt(SCOPE, MemoryPromptRequest.model_validate(body))).long_term_memories or []


async def texts(rig: Rig, query: str, **search: Any) -> list[str]:
    return [memory.text for memory in await recalled(rig, query, **search)]


@pytest.mark.parametrize("query", ["thanks!", "ok", "yes", "x", "👍", "谢谢", "danke dir", "gtg bye"])
async def test_query_without_content_words_recalls_nothing(rig: Rig, query: str) -> None:
    await rig.remember(record("Thanks to x the boat is ok", user_id="u"))
    assert await texts(rig, query) == []
    assert await texts(rig, "Is the boat ok?") == ["Thanks to x the boat is ok"]
    found = await rig.rt[SearchService].search(SCOPE, SearchRequest(text=query))
    assert len(found.memories) == 1, "a search is as it was"


async def test_invalid_request_is_refused_even_without_content_words(rig: Rig) -> None:
    with pytest.raises(BadInput):
        await texts(rig, "ok", timezone="Nowhere")


@pytest.mark.parametrize("query", ["What do you know about me?", "Who am I?", "summarize me", "¿Qué sabes de mí?", "你知道我什么"])
async def test_question_about_everything_lists_the_most_durable_memories_first(rig: Rig, query: str) -> None:
    start = datetime.now(UTC) - timedelta(days=100)
    times = (start + timedelta(days=day) for day in range(99))
    await rig.remember(
        record("Name is Ingvild", user_id="u", created_at=next(times)),
        record("Is deaf in her left ear", user_id="u", created_at=next(times), pinned=True),
        *[record(f"Watched film number {i}", user_id="u", created_at=next(times), memory_type="episodic") for i in range(40)],
        record("Lives in Larkhill", user_id="u", created_at=next(times)),
        record("Somebody else's fact", user_id="other"),
    )
    await rig.append("s", "Two kids.", "Where do I live?", user_id="u")
    await rig.append("s", "You are a kind person.", role="assistant", user_id="u")
    await rig.work()
    shown = await texts(rig, query, limit=8)
    assert shown[:3] == ["Is deaf in her left ear", "Name is Ingvild", "Lives in Larkhill"]
    assert "Watched film number 39" in shown
    assert "Two kids." in shown
    assert not {"Where do I live?", "You are a kind person.", "Somebody else's fact"} & set(shown)
    assert len(shown) == 8


@pytest.mark.parametrize(("name", "lasting"), [("My name is Ingvild.", "We have two daughters."), ("我叫林若溪。", "我对花生过敏。")])
async def test_name_and_lasting_facts_are_shown_after_much_later_chat(rig: Rig, name: str, lasting: str) -> None:
    await rig.append("s", lasting, name, *[f"The train was {i} minutes late." for i in range(30)], user_id="u")
    await rig.work()
    shown = await texts(rig, "What do you know about me?", limit=8)
    assert {name, lasting} <= set(shown)
    assert len(shown) == 8
