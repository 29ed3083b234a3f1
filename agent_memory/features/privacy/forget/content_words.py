"""Extract content words from text and match their forms. Pure functions, no I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import ceil

from agent_memory.features.privacy.forget.word_lists import FUNCTION_SIGNS, FUNCTION_WORDS
from agent_memory.foundation.text.terms import is_blankless, stems, words

_HIRAGANA = re.compile("[\u3041-\u309f]")
MOST_TEXT = 20_000
_SHARED_PREFIX, _PREFIX_SHARE = 5, 0.7
# Storing all prefixes of a word takes memory quadratic in its length, so longer words have no other forms.
_MOST_WORD = 64
# Sentences are compared with many subjects, so the cache holds many. It holds few texts, which take up to 100 KB each.
_SENTENCE_CHARS, _MOST_CACHED_SENTENCES, _MOST_CACHED_TEXTS = 500, 8192, 32


def _content(text: str) -> tuple[str, ...]:
    content_terms: list[str] = []
    for word in words(text):
        if is_blankless(word):
            signs = [sign for sign in word if sign not in FUNCTION_SIGNS]
            # Next to other characters, hiragana are only Japanese grammar.
            signs = [sign for sign in signs if not _HIRAGANA.match(sign)] or signs
            content_terms += map("".join, pairwise(signs)) if len(signs) > 1 else signs
        elif word not in FUNCTION_WORDS and (len(word) > 1 or word.isdigit()):  # "l'adresse"
            content_terms += (stems(word) or [word]) if word.isascii() else [word]
    return tuple(content_terms)


def forms(word: str) -> frozenset[str]:
    """Return a stem and its longest prefixes.

    Two stems are forms of the same word if their sets overlap.
    """
    return _forms(word) if len(word) <= _MOST_WORD else frozenset((word,))


@lru_cache(maxsize=65536)
def _forms(word: str) -> frozenset[str]:
    if any(sign.isdigit() for sign in word):
        return frozenset((word,))
    least = max(_SHARED_PREFIX, ceil(_PREFIX_SHARE * len(word)))
    return frozenset((word, *(word[:size] for size in range(least, len(word)))))


def _read(text: str) -> tuple[tuple[str, ...], frozenset[str]]:
    content_terms = _content(text)
    # In scripts without spaces, a single character can be a word: "猫".
    signs = [sign for word in content_terms if is_blankless(word) for sign in word]
    return content_terms, frozenset().union(signs, *map(forms, set(content_terms)))


_read_sentence = lru_cache(maxsize=_MOST_CACHED_SENTENCES)(_read)
_read_text = lru_cache(maxsize=_MOST_CACHED_TEXTS)(_read)


def _reading(text: str) -> tuple[tuple[str, ...], frozenset[str]]:
    text = text[:MOST_TEXT]
    return _read_sentence(text) if len(text) <= _SENTENCE_CHARS else _read_text(text)


def content(text: str) -> tuple[str, ...]:
    """Return the stems of a text's content words, in order.

    For scripts without spaces, return character pairs.
    """
    return _reading(text)[0]


def content_forms(text: str) -> frozenset[str]:
    return _reading(text)[1]


def shared(terms: Sequence[str], text: str) -> list[str]:
    """Return the terms that occur in a text in any form."""
    have = content_forms(text)
    return [term for term in terms if not have.isdisjoint(forms(term))]


def coverage(terms: Sequence[str], text: str) -> float:
    """Return the fraction of `terms` that occur in a text in any form."""
    return len(shared(terms, text)) / len(terms) if terms else 0.0
