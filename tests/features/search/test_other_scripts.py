"""Test that queries in scripts unknown to the local model match by words."""

from __future__ import annotations

import pytest

from agent_memory.features.memories.search.service import SearchService
from agent_memory.foundation.text.stemming.foreign import is_in_other_script
from agent_memory_client.models import SearchRequest
from tests.support.rig import SCOPE, Rig, record

TEXTS = [
    "我住在柏林的一家酒店",
    "我喜欢吃苹果",
    "他的生日是五月",
    "มีแมวสองตัวที่บ้าน",
    "ฉันชอบดื่มกาแฟ",
    "Я купил новую машину",
    "Мой брат живёт в Риге",
    "Ada paints boats",
]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("哪家酒店？", "我住在柏林的一家酒店"),
        ("生日", "他的生日是五月"),
        ("กาแฟ", "ฉันชอบดื่มกาแฟ"),
        ("Какие машины?", "Я купил новую машину"),
        ("Где живут братья?", "Мой брат живёт в Риге"),
    ],
)
async def test_memory_sharing_words_comes_first_in_other_scripts(rig: Rig, query: str, best: str) -> None:
    await rig.remember(*map(record, TEXTS))
    answer = await rig.rt[SearchService].search(SCOPE, SearchRequest(text=query))
    assert answer.memories[0].text == best


async def test_semantic_mode_still_returns_texts_in_other_scripts(rig: Rig) -> None:
    await rig.remember(*map(record, TEXTS))
    answer = await rig.rt[SearchService].search(SCOPE, SearchRequest.model_validate({"text": "生日", "search_mode": "semantic"}))
    assert len(answer.memories) == len(TEXTS)


@pytest.mark.parametrize(
    ("text", "other"),
    [("Where is Ana?", False), ("Où est le café ?", False), ("生日", True), ("Где мой новый iPhone?", True), ("42?", False)],
)
def test_text_in_another_script_is_recognized(text: str, other: bool) -> None:
    assert is_in_other_script(text) is other
