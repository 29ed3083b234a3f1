"""Write a summary's last line, which lists frequent words that the rest does not contain.

These words tell a model what else it can search for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from agent_memory.foundation.text.languages.phrases import function_words
from agent_memory.foundation.text.stemming.foreign import LANGUAGE_CODES, language_of
from agent_memory.foundation.text.stemming.unicode_forms import normalized
from agent_memory.foundation.text.terms import STOP_WORDS, content_of, fold, is_blankless, terms, words_with_places

HEAD = "Also spoken of"
_SHARE = 0.55
"""The maximum share of the budget that the line may use."""
_FEWEST = 3
"""The line contains only words that occur in at least this many statements."""
_SHORTEST = 3
_LEAST_WORDS = 2


class Subjects:
    """Counts how many statements contain each content word."""

    def __init__(self, texts: Iterable[str], former: Sequence[str] = ()) -> None:
        """Count the words in `texts`. `former` contains words from an earlier line."""
        self._counts = Counter[str]()
        self._forms: dict[str, Counter[str]] = {}
        texts = list(texts)
        self._small = STOP_WORDS | small_words(texts)
        for word in former:
            self._add(word, _FEWEST)
        for text in texts:
            whole = normalized("NFC", text)
            spelled = (whole[start:end].lower() for start, end, _ in words_with_places(whole))
            for spelling in {fold(word): word for word in spelled}.values():
                self._add(spelling, 1)

    def _add(self, spelling: str, number: int) -> None:
        word = fold(spelling)
        # In scripts without spaces, a run of characters is a clause, not a word.
        if len(word) < _SHORTEST or is_blankless(word) or word in self._small or not content_of(word):
            return
        for term in dict.fromkeys(terms(word)):
            self._counts[term] += number
            self._forms.setdefault(term, Counter())[spelling] += number

    def room(self, budget: int, count: Callable[[str], int]) -> int:
        """Return the number of tokens to reserve for the line."""
        most = int(_SHARE * budget)
        return min(most, count(self.line("", most, count)))

    def line(self, summary: str, budget: int, count: Callable[[str], int]) -> str:
        """Return the line if at least two words fit within `budget` tokens, or else ""."""
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
    """Return the function words for the language of the texts, plus Russian ones."""
    spoken = language_of(" ".join(texts))
    return function_words("ru") | function_words(next((code for code, name in LANGUAGE_CODES.items() if name == spoken), ""))
