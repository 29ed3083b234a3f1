"""Classify statements in fifteen languages by their words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations

from agent_memory.foundation.text.dates.named_times import is_only_time
from agent_memory.foundation.text.dates.relative import names_relative_time
from agent_memory.foundation.text.languages.phrases import Language, Token, languages, tokens
from agent_memory.foundation.text.terms import query_terms

MOST_READ = 2_000
"""Maximum number of characters to read from a text."""
MOST_TERMS = 7
"""Maximum number of terms per statement to compare with others."""
SHORT_TERMS = 4
"""A statement with more terms is too specific to be a habit."""
# Names of sections in the languages' data files.
_PERSON, _DURABLE, _ORDERS, _NEGATED, _PASSING = "first person", "durable", "orders", "negated", "passing"


def tells_of_speaker(text: str) -> bool:
    """True if a statement is about its speaker.

    It contains a word such as "I" or "my", or it contains a number or a relative time and does not
    start with a command.
    """
    text_tokens = tokens(text[:MOST_READ])
    if _holds(text_tokens, _PERSON):
        return True
    if not text_tokens or _is_order(text_tokens[0].word) or is_only_time(text[:MOST_READ]):
        return False
    return any(token.word[0].isdigit() for token in text_tokens) or names_relative_time(text[:MOST_READ])


def is_lasting(text: str) -> bool:
    """True if a statement is about something lasting, such as a name."""
    return _holds(tokens(text[:MOST_READ]), _DURABLE)


def recurring_terms(text: str) -> list[str]:
    """Return up to `MOST_TERMS` terms for comparison, or [] if the statement is negated."""
    text = text[:MOST_READ]
    if _holds(tokens(text), _NEGATED):
        return []
    passing = _passing_terms()
    terms = (term for term in query_terms(text, 4 * MOST_TERMS) if term not in passing and not term[0].isdigit())
    return list(dict.fromkeys(terms))[:MOST_TERMS]


def term_pairs(terms: Iterable[str]) -> list[str]:
    """Return all pairs of terms. Statements with the same meaning share a pair."""
    return [" ".join(pair) for pair in combinations(sorted(terms), 2)]


@lru_cache(maxsize=8)
def _phrases(section: str) -> Sequence[tuple[Language, frozenset[str], int]]:
    """Return a section's phrases by language, with the word count of the longest phrase."""
    phrases = [(language, list(language.phrases(section))) for language in languages().values()]
    return [(language, language.words(section), max(map(len, each))) for language, each in phrases if each]


def _holds(text_tokens: Sequence[Token], section: str) -> bool:
    words = [token.word for token in text_tokens]
    for language, phrases, longest in _phrases(section):
        between = "" if language.blankless else " "
        for length in range(1, longest + 1):
            if any(between.join(words[start : start + length]) in phrases for start in range(len(words) - length + 1)):
                return True
    return False


def _is_order(word: str) -> bool:
    return any(word in phrases for _, phrases, _ in _phrases(_ORDERS))


@lru_cache(maxsize=1)
def _passing_terms() -> frozenset[str]:
    """Return terms that only say when or how often something happens."""
    return frozenset(term for _, phrases, _ in _phrases(_PASSING) for phrase in phrases for term in query_terms(phrase, 8))
