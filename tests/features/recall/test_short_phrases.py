"""Test that a one-word query shows short phrases only if they are close matches.

Any two short texts are somewhat similar.
"""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.recall.service import RecallService
from agent_memory_client.models import MemoryPromptRequest, SearchModeEnum, SearchRequest
from tests.support.rig import SCOPE, Rig


async def texts(rig: Rig, query: str, **search: Any) -> list[str]:
    body = {"query": query, "long_term_search": {"user_id": {"eq": "u"}, **search}}
    memories = (await rig.rt[RecallService].prompt(SCOPE, MemoryPromptRequest.model_validate(body))).long_term_memories or []
    return [memory.text for memory in memories]


@pytest.fixture
async def phrases(rig: Rig) -> Rig:
    for text in ("A squeaky one.", "A rusty saw.", "Two grey cats.", "Tulips and roses.", "I want to oil a hinge."):
        await rig.append(text, text, user_id="u")
    await rig.work()
    return rig


@pytest.mark.parametrize("query", ["What is a quasar?", "What is a zeppelin?", "What about uranium?"])
async def test_short_phrases_do_not_match_an_unrelated_single_word(phrases: Rig, query: str) -> None:
    assert await texts(phrases, query) == []
    found = await phrases.rt[SearchService].search(SCOPE, SearchRequest(text=query, search_mode=SearchModeEnum.HYBRID))
    assert len(found.memories) == 5, "a search is as it was"


@pytest.mark.parametrize(("query", "phrase"), [("What are my pets?", "Two grey cats."), ("Which flowers?", "Tulips and roses.")])
async def test_short_phrase_that_answers_the_query_is_shown(phrases: Rig, query: str, phrase: str) -> None:
    assert await texts(phrases, query) == [phrase]


async def test_short_phrase_beside_the_queried_word_is_shown(rig: Rig) -> None:
    await rig.append("s", "Which radio star fascinates you?", role="assistant", user_id="u")
    await rig.append("s", "A quasar.", "A squeaky one.", user_id="u")
    await rig.work()
    assert {"A quasar.", "A squeaky one."} <= set(await texts(rig, "What is a quasar?"))


async def test_content_filter_shows_a_short_phrase_that_does_not_match(phrases: Rig) -> None:
    shown = await texts(phrases, "What is a quasar?", session_id={"eq": "A squeaky one."}, memory_type={"eq": "message"})
    assert shown == ["A squeaky one."]
