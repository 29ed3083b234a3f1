"""Test that caches do not retain callers' long words and texts."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from agent_memory.features.privacy.forget.content_words import forms
from agent_memory.features.recall.line_escaping import one_line
from agent_memory.foundation.text.languages.filler import is_filler
from agent_memory.foundation.text.languages.memory_requests import memory_request
from agent_memory.foundation.text.languages.phrases import folded
from agent_memory.foundation.text.terms import terms

# Longer than the longest cached text, 65,536 characters.
COUNT, SIZE = 4, 70_000


@pytest.mark.parametrize("read", [terms, folded, forms, one_line, memory_request, is_filler])
@pytest.mark.parametrize("letter", ["a", "é", "狗"])
def test_long_texts_are_not_cached(read: Callable[[str], object], letter: str) -> None:
    read("warm up")
    read(letter * SIZE)  # data that is loaded once
    tracemalloc.start()
    try:
        for number in range(COUNT):
            read(f"{number}{letter * SIZE}")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < COUNT * SIZE * 3 / 4


def test_few_texts_are_cached() -> None:
    count, size = 400, 2_000
    terms("warm up")
    tracemalloc.start()
    try:
        for number in range(count):
            terms(f"{number}{'a' * size}")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < count * size * 3 / 4
