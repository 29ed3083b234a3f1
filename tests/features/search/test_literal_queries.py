"""Test literal queries: a name with symbols, a letter, an emoji, or one word.

A prompt shows the search results and nothing else.
"""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.recall.service import RecallService
from agent_memory.features.sessions.service import SessionService
from agent_memory_client.models import AppendMessagesRequest, MemoryPromptRequest, SearchRequest
from tests.support.rig import SCOPE, Rig

SAID = {
    "C++": "I program in C++ on weekdays",
    "C#": "At work we moved to C# last year",
    "R": "My statistics are all written in R",
    "\U0001f3b8": "My favourite sign is \U0001f3b8 because I play in a band",
    "❤️": "I end my letters with ❤",
    "Bergen": "I grew up in Bergen",
    "F#?": "The song is in F# minor",
    "Mia": "My sister is called Mia",
    "dag!": "On Fridays I play chess with Dag",
}


@pytest.fixture
async def told(rig: Rig) -> Rig:
    texts = [
        *SAID.values(),
        "Thanks, that was nice",
        "The answer was yes",
        "Our cat sleeps all day",
        "The weather was mild in March",
        "Lunch is at noon",
    ]
    messages = [{"role": "user", "content": text} for text in texts]
    await rig.rt[SessionService].append(SCOPE, "s", AppendMessagesRequest.model_validate({"user_id": "ana", "messages": messages}))
    await rig.work()
    return rig


async def shown(rig: Rig, query: str, **more: Any) -> list[str]:
    body = MemoryPromptRequest.model_validate({"query": query, "user_id": "ana", **more})
    return [memory.text for memory in (await rig.rt[RecallService].prompt(SCOPE, body)).long_term_memories or []]


async def test_prompt_shows_exactly_the_search_results_of_a_literal_query(told: Rig) -> None:
    for query, text in SAID.items():
        assert text in await shown(told, query), query
        search = SearchRequest.model_validate({"text": query, "user_id": {"eq": "ana"}})
        assert text in [memory.text for memory in (await told.rt[SearchService].search(SCOPE, search)).memories], query
    for query in ("C++", "C#", "R", "\U0001f3b8"):
        assert await shown(told, query) == [SAID[query]]


@pytest.mark.parametrize("query", ["thanks!", "ok", "yes", "haha", ":)", "\U0001f44d", "x", "hmm...", "\u200b"])
async def test_query_without_content_recalls_nothing(told: Rig, query: str) -> None:
    assert await shown(told, query) == []


async def test_prompt_with_a_query_and_a_user_searches_by_default(told: Rig) -> None:
    assert SAID["Bergen"] in await shown(told, "Where did I grow up?")
    with pytest.raises(Exception, match="long_term_search"):
        await shown(told, "Where did I grow up?", long_term_search=False)
