"""The last line of a summary without a model: the words that came up most in what was said, and that the rest of it does not have (pure).

A few statements of a long conversation cannot hold what it was about: of whole sentences in 300 tokens no choice at all keeps more than
59 % of the evaluation's words. Its words without their sentences tell a model at least what there is to search for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from agent_memory.foundation.text.languages.phrases import function_words
from agent_memory.foundation.text.stemming.foreign import LANGUAGE_CODES, language_of
from agent_memory.foundation.text.terms import STOP_WORDS, content_of, is_blankless, terms, words

HEAD = "Also spoken of"
_SHARE = 0.55
"""Of the budget at most."""
_FEWEST = 3
"""Statements that have a word."""
_SHORTEST = 3
_LEAST_WORDS = 2


class Subjects:
    """The words of content of statements, by how many of these have them."""

    def __init__(self, texts: Iterable[str], former: Sequence[str] = ()) -> None:
        """`former`: words of the line of a former summary."""
        self._counts = Counter[str]()
        self._forms: dict[str, Counter[str]] = {}
        texts = list(texts)
        self._small = STOP_WORDS | small_words(texts)
        for word in former:
            self._add(word, _FEWEST)
        for text in texts:
            for word in dict.fromkeys(words(text)):
                self._add(word, 1)

    def _add(self, word: str, number: int) -> None:
        # A run of characters without blanks is a clause, not a word.
        if len(word) < _SHORTEST or is_blankless(word) or word in self._small or not content_of(word):
            return
        for term in dict.fromkeys(terms(word)):
            self._counts[term] += number
            self._forms.setdefault(term, Counter())[word] += number

    def room(self, budget: int, count: Callable[[str], int]) -> int:
        """The tokens that are set apart for the line."""
        most = int(_SHARE * budget)
        return min(most, count(self.line("", most, count)))

    def line(self, summary: str, budget: int, count: Callable[[str], int]) -> str:
        """The line of at most `budget` tokens by `count` for a summary; "" when nothing is left to name."""
        shown = frozenset(terms(summary))
        left = budget - count(f"{HEAD}: ")
        often = [(term, number) for term, number in self._counts.most_common() if number >= _FEWEST and term not in shown]
        named = {self._forms[term].most_common(1)[0][0]: number for term, number in reversed(often)}
        sizes = {word: count(f" {word}") for word in named}
        chosen: list[str] = []
        for word in sorted(named, key=lambda word: named[word] / sizes[word], reverse=True):
            if sizes[word] <= left:
                chosen.append(word)
                left -= sizes[word]
        return f"{HEAD}: {' '.join(chosen)}" if len(chosen) >= _LEAST_WORDS else ""


def small_words(texts: Iterable[str]) -> frozenset[str]:
    """The words that say nothing in the language of texts; Russian ones are no words of others."""
    spoken = language_of(" ".join(texts))
    return function_words("ru") | function_words(next((code for code, name in LANGUAGE_CODES.items() if name == spoken), ""))
