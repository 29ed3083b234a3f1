"""Stem words in languages other than English."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import Stemmer

from agent_memory.foundation.core.tables import read_table

# `\w` does not match vowel signs, which are parts of words.
MARKS = (
    "\u0300-\u036f\u0653-\u065f\u0670\u06d6-\u06ed\u0730-\u074a\u07a6-\u07b0\u07eb-\u07f3\u0900-\u0963\u0966-\u096f\u0971-\u0df3"
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u0f71-\u0f84\u102b-\u103e\u1056-\u1059\u105e-\u1060"
    "\u1062-\u106d\u1071-\u1074\u1082-\u108d\u17b4-\u17d3\u17dd"
)
_WORD = re.compile(rf"\b[^\W\d_][\w{MARKS}]*+")
VOWEL_SIGNS = (
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1060\u1062-\u106d\u1071-\u1074\u1082-\u108d"
    "\u17b4-\u17d3"
)
"""Vowel signs in scripts written without spaces."""
_SCRIPTS = (
    (re.compile("[\u0400-\u052f]"), "russian"),
    (re.compile("[\u0370-\u03ff\u1f00-\u1fff]"), "greek"),
    (re.compile("[\u0620-\u06ff]"), "arabic"),
    (re.compile("[\u0900-\u097f]"), "hindi"),
    (re.compile("[\u0530-\u058f]"), "armenian"),
    (re.compile("[\u0b80-\u0bff]"), "tamil"),
)
_LATIN = re.compile("[a-z\u00df-\u024f\u1e00-\u1eff]")
_WORDS = read_table("text/data/words/common.toml")
LANGUAGE_CODES = dict(zip(["de", "es", "fr", "pt", "it", "nl", "sv", "tr", "pl"], _WORDS["frequent"], strict=True))
"""Languages in Latin script, keyed by the codes of their data files."""
_SHARED = frozenset(_WORDS["shared"].split())
_ENGLISH = frozenset(_WORDS["english"].split())
_LANGUAGES = {language: frozenset(words.split()) - _ENGLISH for language, words in _WORDS["frequent"].items()}
_ALL = frozenset().union(*_LANGUAGES.values())
_LEAST = 2  # frequent words needed to recognize a language
_LONGEST = 64  # characters; a word of this length or more gets no stem


def language_of(text: str) -> str | None:
    """Guess the language of Latin-script text from its frequent words.

    Returns None for English, or if there are too few frequent words.
    """
    # A wrong guess is harmless, because the stems are additional index terms.
    lowered = text.lower().split() if len(text) < 400 else text[:4000].lower().split()
    if text.isascii() and _ALL.isdisjoint(lowered):
        return None
    bare_words = [word.strip(".,;:!?¿¡\"'()") for word in lowered]
    counts = {language: sum(word in words for word in bare_words) for language, words in _LANGUAGES.items()}
    language = max(counts, key=counts.__getitem__)
    return language if counts[language] >= _LEAST and counts[language] > sum(word in _ENGLISH for word in bare_words) else None


def frequent_words(language: str) -> frozenset[str]:
    """Return a language's frequent words, which carry no content."""
    return _LANGUAGES[language] | _SHARED


def foreign_stems(text: str) -> Sequence[str]:
    """Return the stems of non-English words, except in scripts written without spaces."""
    language = language_of(text)
    if language is None and text.isascii():
        return ()
    stemmed: list[str] = []
    for m in _WORD.finditer(text.lower()):
        word = m[0]
        spoken = language if _LATIN.match(word) else next((name for script, name in _SCRIPTS if script.match(word)), None)
        if spoken is not None and len(word) < _LONGEST:
            stemmed.append(_stem(spoken, word))
    return stemmed


_stemmers: dict[str, Stemmer.Stemmer] = {}


@lru_cache(maxsize=16384)
def _stem(language: str, word: str) -> str:
    stemmer = _stemmers.get(language)
    if stemmer is None:
        stemmer = _stemmers.setdefault(language, Stemmer.Stemmer(language, 0))
    return stemmer.stemWord(word)


_LETTER = re.compile(r"[^\W\d_]")
_LATIN_LETTER = re.compile("[A-Za-z\u00aa-\u024f\u1e00-\u1eff\uff21-\uff5a]")


def is_in_other_script(text: str) -> bool:
    """True if most letters are not Latin."""
    if text.isascii():
        return False
    letters = len(_LETTER.findall(text))
    return 2 * len(_LATIN_LETTER.findall(text)) < letters
