"""What a text refers to by a name and a number: "Candle Street 8", "Zimmer 12", "KLM 1023" (pure).

Such a thing is one of its kind, so another text that names it is about the same. Scripts without capital letters show no names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from agent_memory.foundation.text.dates.named_times import names_time
from agent_memory.foundation.text.summary_subjects import small_words
from agent_memory.foundation.text.terms import content_of, fold, words

# What is longer says more than one thing.
_MOST_CHARS = 600
_MOST_REFERENTS = 4
_MOST_NAME_WORDS = 4
_PIECE = re.compile(r"[^\W_]+|[.!?…\n]")
_NUMBER = re.compile(r"\d{1,5}[a-z]?", re.IGNORECASE)
# What stands between a name and its number, or between the words of a name.
_BETWEEN = frozenset([" ", "-", " #", " №"])
_COUNTING = frozenset(["no", "nr", "num"])
_COUNTED = re.compile(r"\b(?:no|nr|num)\.? ?(?=\d)", re.IGNORECASE)


class Referent(NamedTuple):
    """A name in folded words, and its number."""

    name: tuple[str, ...]
    number: str

    @property
    def wording(self) -> str:
        """The words that another text about it must have: a name of one word says little without its number."""
        return " ".join(self.name if len(self.name) > 1 else (*self.name, self.number))

    def is_named_in(self, text: str) -> bool:
        """Whether a text names it: with this number, or by more than one word and without another number."""
        said = words(text[:_MOST_CHARS])
        length = len(self.name)
        for start in range(len(said) - length + 1):
            if tuple(said[start : start + length]) == self.name:
                after = said[start + length : start + length + 2]
                following = next((word for word in after if word not in _COUNTING), "")
                if following == self.number or (length > 1 and _NUMBER.fullmatch(following) is None):
                    return True
        return False


def referents(text: str) -> Sequence[Referent]:
    """The first things that a text refers to by a name and a number; days, years and times of day are none."""
    if len(text) > _MOST_CHARS or not any(map(str.isdigit, text)):
        return ()
    text = _COUNTED.sub("", text)
    small = small_words([text])
    found: dict[Referent, None] = {}
    name: list[str] = []
    begins, name_begins, end = True, False, 0
    for piece in _PIECE.finditer(text):
        word, joined = piece[0], text[end : piece.start()] in _BETWEEN
        if name and joined and _NUMBER.fullmatch(word):
            # At the beginning of a sentence any word has a capital letter.
            if len(name) > 1 or not name_begins:
                found[Referent(tuple(map(fold, name[-_MOST_NAME_WORDS:])), fold(word))] = None
            name = []
        elif word[0].isupper() and fold(word) not in small and content_of(word):
            if not (name and joined):
                name, name_begins = [], begins
            name.append(word)
        else:
            name = []
        begins, end = not word[0].isalnum(), piece.end()
    return [each for each in found if not names_time(f"on {' '.join((*each.name, each.number))}")][:_MOST_REFERENTS]
