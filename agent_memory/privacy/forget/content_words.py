"""The words of content of what is to be forgotten and of what was said, and which of them are forms of one word (pure)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from agent_memory.privacy.forget.word_lists import FUNCTION_SIGNS, FUNCTION_WORDS
from agent_memory.text.terms import STOP_WORDS, stems, words

IDEOGRAPH = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_HIRAGANA = re.compile("[\u3041-\u309f]")
MOST_TEXT = 20_000
"""Characters of a text that are looked at."""
_SHARED_PREFIX, _PREFIX_SHARE = 5, 0.7


@lru_cache(maxsize=8192)
def _content(text: str) -> tuple[str, ...]:
    kept: list[str] = []
    for word in words(text):
        if IDEOGRAPH.search(word):
            signs = [sign for sign in word if sign not in FUNCTION_SIGNS]
            # Beside other signs of Japanese, hiragana are its grammar.
            kept += [sign for sign in signs if not _HIRAGANA.match(sign)] or signs
        elif word not in STOP_WORDS and word not in FUNCTION_WORDS:
            kept += (stems(word) or [word]) if word.isascii() else [word]
    return tuple(kept)


def content(text: str) -> tuple[str, ...]:
    """The words of content of a text in order, as stems where there are any; scripts without blanks by their characters."""
    return _content(text[:MOST_TEXT])


def is_same_word(one: str, other: str) -> bool:
    """Whether two stems are forms of one word: "allerg" and "allergi"."""
    if one == other:
        return True
    shared = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        shared += 1
    longer = max(len(one), len(other))
    return shared >= _SHARED_PREFIX and shared >= _PREFIX_SHARE * longer and not any(sign.isdigit() for sign in one + other)


def coverage(terms: Sequence[str], text: str) -> float:
    """The share (0..1) of some words that a text has in any form; 0 without words."""
    have = set(content(text))
    held = [term for term in terms if term in have or any(is_same_word(term, other) for other in have)]
    return len(held) / len(terms) if terms else 0.0
