"""Recognize statements about lasting facts, such as identity, home and family."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from agent_memory.foundation.text import terms as analysis
from agent_memory.foundation.text.languages.phrases import Language, languages, tokens

# A longer text is not an introduction.
_MOST_CHARS = 600
_PAIR = 2
_APOSTROPHES = re.compile("['’ʼ`´]")


def says_name(text: str) -> bool:
    """True if a short text gives the speaker's name ("my name is Mara")."""
    if len(text) > _MOST_CHARS:
        return False
    text_tokens = tokens(text)
    return any(pattern.search(language.join(text_tokens).text) for language, pattern in _names())


def is_lasting(text: str) -> bool:
    """True if a short text contains a word that indicates a lasting fact."""
    if len(text) > _MOST_CHARS:
        return False
    # An article or pronoun may precede an apostrophe ("j'habite").
    text_words = [token.word for token in tokens(_APOSTROPHES.sub(" ", text))]
    words, characters = _lasting()
    return not words.isdisjoint(text_words) or (analysis.is_blankless(text) and characters.search("".join(text_words)) is not None)


@lru_cache(maxsize=1)
def name_terms() -> Sequence[str]:
    """Return the index terms for words that introduce names and indicate lasting facts."""
    return list(frozenset(_terms("name")).intersection(lasting_terms()))


@lru_cache(maxsize=1)
def lasting_terms() -> Sequence[str]:
    """Return the index terms for words that indicate lasting facts."""
    return _terms("lasting")


@lru_cache(maxsize=1)
def _names() -> Sequence[tuple[Language, re.Pattern[str]]]:
    return [(language, language.anywhere("name")) for language in languages().values()]


@lru_cache(maxsize=1)
def _lasting() -> tuple[frozenset[str], re.Pattern[str]]:
    words, characters = set[str](), set[str]()
    for language in languages().values():
        for word in language.words("lasting"):
            # Korean words have endings, so they are searched as characters.
            (characters if analysis.is_blankless(word) else words).add(word)
    return frozenset(words), re.compile("|".join(map(re.escape, sorted(characters))))


def _terms(section: str) -> Sequence[str]:
    collected: dict[str, None] = {}
    for language in languages().values():
        for phrase in language.phrases(section):
            for word in [" ".join(phrase).replace(" ", "")] if language.blankless else phrase:
                collected |= dict.fromkeys(_terms_of(word))
    return list(collected)


def _terms_of(word: str) -> Sequence[str]:
    made = analysis.terms(word)
    if not analysis.is_blankless(word):
        return made
    # Leave out single characters, which come first and say nothing.
    return made[len(word) :] if len(word) >= _PAIR else made
