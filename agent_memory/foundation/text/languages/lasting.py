"""What of a user's statements lasts: who somebody is, where they live, whom they belong to; by the languages' data files (pure)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from agent_memory.foundation.text import terms as analysis
from agent_memory.foundation.text.languages.phrases import Language, languages, tokens

# What is longer is no introduction, nor a plain statement of what lasts.
_MOST_CHARS = 600
_PAIR = 2
_APOSTROPHES = re.compile("['’ʼ`´]")


def says_name(text: str) -> bool:
    """Whether a short text says how somebody is called: "my name is Mara", "ich heiße Korbinian", "我叫若溪"."""
    if len(text) > _MOST_CHARS:
        return False
    said = tokens(text)
    return any(pattern.search(language.join(said).text) is not None for language, pattern in _names())


def is_lasting(text: str) -> bool:
    """Whether a short text has a word of what lasts: where somebody lives and works, family, health, likes and dislikes."""
    if len(text) > _MOST_CHARS:
        return False
    # An article or a pronoun may stand before an apostrophe ("j'habite").
    said = [token.word for token in tokens(_APOSTROPHES.sub(" ", text))]
    words, characters = _lasting()
    return not words.isdisjoint(said) or (analysis.is_blankless(text) and characters.search("".join(said)) is not None)


@lru_cache(maxsize=1)
def name_terms() -> Sequence[str]:
    """Index terms (`text.terms`) of the words that say how somebody is called: those of what lasts that stand in `[name]`, too."""
    return list(frozenset(_terms("name")).intersection(lasting_terms()))


@lru_cache(maxsize=1)
def lasting_terms() -> Sequence[str]:
    """The index terms of the words of what lasts."""
    return _terms("lasting")


@lru_cache(maxsize=1)
def _names() -> Sequence[tuple[Language, re.Pattern[str]]]:
    return [(language, pattern) for language in languages().values() if (pattern := language.anywhere("name")) is not None]


@lru_cache(maxsize=1)
def _lasting() -> tuple[frozenset[str], re.Pattern[str]]:
    words, characters = set[str](), set[str]()
    for language in languages().values():
        for word in language.words("lasting"):
            # Korean words have endings.
            (characters if analysis.is_blankless(word) else words).add(word)
    return frozenset(words), re.compile("|".join(map(re.escape, sorted(characters))))


def _terms(section: str) -> Sequence[str]:
    """The terms of the words of a section; of scripts that write no blanks the pairs."""
    found: dict[str, None] = {}
    for language in languages().values():
        for phrase in language.phrases(section):
            for word in [" ".join(phrase).replace(" ", "")] if language.blankless else phrase:
                found |= dict.fromkeys(_terms_of(word))
    return list(found)


def _terms_of(word: str) -> Sequence[str]:
    made = analysis.terms(word)
    if not analysis.is_blankless(word):
        return made
    # Its characters come first, then their pairs: a character says nothing.
    return made[len(word) :] if len(word) >= _PAIR else made
