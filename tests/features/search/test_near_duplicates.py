"""Test the filter that removes near duplicates from results."""

from __future__ import annotations

import random

from agent_memory.features.memories.search.near_duplicates import DuplicateFilter, deciding_words
from agent_memory_client.models import MemoryRecord, MemoryTypeEnum

_ONE = ["the", "a", "Oh", "well,", "Café", "cafe", "CAFE", "Berlin.", "Berlin!", "lives", "lived", "in", "„Berlin“", "and", "2", "...", "*"]
_WORDS = [*_ONE, "ﬁne", "fine", "so", "½"]


def fact(text: str, number: int) -> MemoryRecord:
    return MemoryRecord(id=f"m{number}", text=text, memory_type=MemoryTypeEnum.SEMANTIC)


def test_duplicate_filter_names_the_first_fact_with_the_same_words() -> None:
    pick = random.Random(8)
    for _ in range(40):
        texts = [" ".join(pick.choices(_WORDS, k=pick.randint(1, 4))) for _ in range(60)]
        distinct, first = DuplicateFilter(), dict[tuple[str, ...], str]()
        for number, text in enumerate(texts):
            words = deciding_words(text)
            assert distinct.add_memory(fact(text, number)) == first.get(words), text
            first.setdefault(words, f"m{number}")
