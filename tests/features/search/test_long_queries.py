"""Test that the server reads only the beginning of a long query and returns a notice."""

from __future__ import annotations

import pytest

from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.recall.service import RecallService
from agent_memory_client.models import MemoryPromptRequest, SearchRequest
from tests.support.rig import SCOPE, MakeRig, record


@pytest.mark.parametrize(("most", "found"), [(64, ["The ferry to Bergen"]), (8192, ["Plums are sweet", "The ferry to Bergen"])])
async def test_long_query_is_truncated_to_its_beginning(make_rig: MakeRig, most: int, found: list[str]) -> None:
    async with make_rig(MAX_QUERY_BYTES=most) as rig:
        await rig.remember(record("The ferry to Bergen"), record("Plums are sweet"))
        text = "    Which ferry? " + "word " * 20 + "And plums?"
        answer = await rig.rt[SearchService].search(SCOPE, SearchRequest.model_validate({"text": text, "search_mode": "keyword"}))
        assert sorted(memory.text for memory in answer.memories) == found
        assert any("MAX_QUERY_BYTES" in notice for notice in answer.notices or ()) == (most == 64)


async def test_prompt_reports_the_truncation_and_keeps_the_whole_query_for_the_model(make_rig: MakeRig) -> None:
    async with make_rig(MAX_QUERY_BYTES=64) as rig:
        await rig.append("this", "hello", user_id="ann")
        query = "Which ferry? " + "word " * 20 + "And plums?"
        body = MemoryPromptRequest.model_validate({"query": query, "session": {"session_id": "this"}, "long_term_search": True})
        answer = await rig.rt[RecallService].prompt(SCOPE, body)
        assert any("MAX_QUERY_BYTES" in notice for notice in answer.notices or ())
        content = answer.messages[-1].content
        assert getattr(content, "text", content) == query


async def test_query_is_truncated_between_characters(make_rig: MakeRig) -> None:
    async with make_rig(MAX_QUERY_BYTES=64) as rig:
        query = await rig.rt[SearchService].queries.build_query(SCOPE, SearchRequest(text="忽" * 30))
        assert query.request.text == "忽" * 21
