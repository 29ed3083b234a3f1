"""Find things that a text identifies by name and number. No I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from agent_memory.foundation.text.dates.named_times import names_time
from agent_memory.foundation.text.summary_subjects import small_words
from agent_memory.foundation.text.terms import content_of, fold, words

_MOST_CHARS = 600
_MOST_REFERENTS = 4
_MOST_NAME_WORDS = 4
_PIECE = re.compile(r"[^\W_]+|[.!?…\n]")
_NUMBER = re.compile(r"\d{1,5}[a-z]?", re.IGNORECASE)
_BETWEEN = frozenset([" ", "-", " #", " №"])
_COUNTING = frozenset(["no", "nr", "num"])
_COUNTED = re.compile(r"\b(?:no|nr|num)\.? ?(?=\d)", re.IGNORECASE)


class Referent(NamedTuple):
    name: tuple[str, ...]
    number: str

    @property
    def wording(self) -> str:
        """The words that another text about the thing must contain."""
        return " ".join(self.name if len(self.name) > 1 else (*self.name, self.number))

    def is_named_in(self, text: str) -> bool:
        """True if a text contains this thing's name and number.

        The number is optional if the name has more than one word.
        """
        text_words = words(text[:_MOST_CHARS])
        length = len(self.name)
        for start in range(len(text_words) - length + 1):
            if tuple(text_words[start : start + length]) == self.name:
                after = text_words[start + length : start + length + 2]
                following = next((word for word in after if word not in _COUNTING), "")
                if following == self.number or (length > 1 and _NUMBER.fullmatch(following) is None):
                    return True
        return False


def referents(text: str) -> Sequence[Referent]:
    """Return up to four things with a name and a number, in order of appearance."""
    if len(text) > _MOST_CHARS or not any(map(str.isdigit, text)):
        return ()
    text = _COUNTED.sub("", text)
    small = small_words([text])
    distinct: dict[Referent, None] = {}
    name: list[str] = []
    begins, name_begins, end = True, False, 0
    for piece in _PIECE.finditer(text):
        word, joined = piece[0], text[end : piece.start()] in _BETWEEN
        if name and joined and _NUMBER.fullmatch(word):
            # A single capitalized word at the start of a sentence need not be a name.
            if len(name) > 1 or not name_begins:
                distinct[Referent(tuple(map(fold, name[-_MOST_NAME_WORDS:])), fold(word))] = None
            name = []
        elif word[0].isupper() and fold(word) not in small and content_of(word):
            if not (name and joined):
                name, name_begins = [], begins
            name.append(word)
        else:
            name = []
        begins, end = not word[0].isalnum(), piece.end()
    return [each for each in distinct if not names_time(f"on {' '.join((*each.name, each.number))}")][:_MOST_REFERENTS]
