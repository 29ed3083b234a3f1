"""The last line of an extractive summary: the most frequent words that the rest of it lacks.

Whole sentences within 300 tokens keep at most 59 % of the evaluation's words; single words tell a model what to search
for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from agent_memory.foundation.text.languages.phrases import function_words
from agent_memory.foundation.text.stemming.foreign import LANGUAGE_CODES, language_of
from agent_memory.foundation.text.terms import STOP_WORDS, content_of, is_blankless, terms, words

HEAD = "Also spoken of"
_SHARE = 0.55
"""The line's largest share of the budget."""
_FEWEST = 3
"""Least number of statements with a word."""
_SHORTEST = 3
_LEAST_WORDS = 2


class Subjects:
    """Content words by their number of statements."""

    def __init__(self, texts: Iterable[str], former: Sequence[str] = ()) -> None:
        """`former`: words of a former summary's line."""
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
        # Characters without blanks are a clause, not a word.
        if len(word) < _SHORTEST or is_blankless(word) or word in self._small or not content_of(word):
            return
        for term in dict.fromkeys(terms(word)):
            self._counts[term] += number
            self._forms.setdefault(term, Counter())[word] += number

    def room(self, budget: int, count: Callable[[str], int]) -> int:
        """Return the tokens reserved for the line."""
        most = int(_SHARE * budget)
        return min(most, count(self.line("", most, count)))

    def line(self, summary: str, budget: int, count: Callable[[str], int]) -> str:
        """Return the line of at most `budget` tokens by `count`, "" if nothing is left to name."""
        summary_terms = frozenset(terms(summary))
        left = budget - count(f"{HEAD}: ")
        often = [(term, number) for term, number in self._counts.most_common() if number >= _FEWEST and term not in summary_terms]
        named = {self._forms[term].most_common(1)[0][0]: number for term, number in reversed(often)}
        sizes = {word: count(f" {word}") for word in named}
        chosen: list[str] = []
        for word in sorted(named, key=lambda word: named[word] / sizes[word], reverse=True):
            if sizes[word] <= left:
                chosen.append(word)
                left -= sizes[word]
        return f"{HEAD}: {' '.join(chosen)}" if len(chosen) >= _LEAST_WORDS else ""


def small_words(texts: Iterable[str]) -> frozenset[str]:
    """Return function words of the texts' language, and Russian ones, which collide with no other language."""
    spoken = language_of(" ".join(texts))
    return function_words("ru") | function_words(next((code for code, name in LANGUAGE_CODES.items() if name == spoken), ""))
