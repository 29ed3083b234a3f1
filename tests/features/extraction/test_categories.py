"""Test how statements are categorized if no model is configured."""

from __future__ import annotations

from agent_memory.features.extraction.categories import nearest_categories
from agent_memory.features.extraction.rules import ExtractionRulesService
from agent_memory.features.memories.search.service import SearchService
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory_client.models import ExtractionCategory, ExtractionRules, SearchRequest
from tests.support.rig import SCOPE, MakeRig, Rig

GARDEN = ExtractionCategory(name="garden", description="plants, soil, tools and what grows")
MUSIC = ExtractionCategory(name="music", description="instruments, songs, bands and concerts")


async def categories(rig: Rig) -> dict[str, str | None]:
    return {memory.text: memory.category for memory in await rig.stored()}


async def test_statement_gets_the_nearest_category_of_its_namespace(rig: Rig) -> None:
    await rig.rt[ExtractionRulesService].put(SCOPE, "n", None, ExtractionRules(categories=[GARDEN, MUSIC]))
    texts = {"I planted tomatoes and beans": "garden", "I play the cello in a quartet": "music", "My tax number is 4711": None}
    await rig.append("s", *texts, namespace="n")
    await rig.append("t", "I grow roses behind the house", namespace="other")
    await rig.work()
    assert await categories(rig) == {**texts, "I grow roses behind the house": None}
    answer = await rig.rt[SearchService].search(SCOPE, SearchRequest.model_validate({"text": "", "category": {"eq": "garden"}}))
    assert [memory.text for memory in answer.memories] == ["I planted tomatoes and beans"]


async def test_nearest_category_is_skipped_if_a_model_is_configured(make_rig: MakeRig, chat: OpenAIChat) -> None:
    async with make_rig(chat) as rig:
        assert await nearest_categories(rig.rt, ["I planted tomatoes"], [GARDEN]) == [None]


async def test_nearest_category_is_skipped_for_a_remote_embedding_server(make_rig: MakeRig) -> None:
    async with make_rig() as rig:
        assert await nearest_categories(rig.rt, ["I planted tomatoes"], [GARDEN]) == ["garden"]
    async with make_rig(EMBEDDING_PROVIDER="openai", OPENAI_API_KEY="none") as rig:
        assert await nearest_categories(rig.rt, ["I planted tomatoes"], [GARDEN]) == [None]


async def test_nearest_category_without_texts_or_categories_returns_none(rig: Rig) -> None:
    assert await nearest_categories(rig.rt, [], [GARDEN]) == []
    assert await nearest_categories(rig.rt, ["I planted tomatoes"], []) == [None]
