"""Read each language's phrases from the files in `agent_memory/foundation/text/data`.

Commas or line breaks separate the phrases in a section, such as `[filler]`; `#` begins a comment. Case, accents,
apostrophes and punctuation make no difference. In a phrase:

- `a|b` matches either word; `_` is a space inside a word.
- `(a)` is optional.
- `~` matches any word, `<verbs>` any word in the section `[verbs]`, and `~<verbs>` any other word.
- `*` matches the rest of the text, or the words between two parts of the phrase.

The section `[blankless]` marks a language written without spaces. In its file, spaces separate only the parts of a
phrase.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import product
from typing import NamedTuple

from agent_memory.foundation.text.terms import fold

CODES = ("en", "zh", "es", "de", "fr", "pt", "ru", "ja", "ko", "it", "nl", "pl", "tr", "ar", "hi")
REST = "*"
ANY_WORD = "~"

# `\w` does not match vowel signs, which are parts of words.
_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0966-\u0dff\u0e00-\u0eff"
    "\u0f71-\u0f84\u1000-\u1049\u1780-\u17d3"
)
_BLANKLESS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f\U00020000-\U0002fa1f"
_TOKEN = re.compile(f"[{_BLANKLESS}]|(?:(?![{_BLANKLESS}_])[\\w{_MARKS}])+")
BLANKLESS = re.compile(f"[{_BLANKLESS}]")
"""Matches one character in a script written without spaces."""
_APOSTROPHES = re.compile("['’ʼ`´]")
_PROLONGED = "ー"
# Longer words rarely repeat and would fill memory.
_MOST_CACHED = 48
_HARAKAT = re.compile("[\u0640\u064b-\u0652\u0670]")


NOTHING = re.compile("(?!)")
"""The pattern of a section without phrases."""


class Token(NamedTuple):
    """A folded word (or, in scripts written without spaces, a character) and its position."""

    word: str
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """Split a text into tokens. Apostrophes do not split words."""
    bare = _APOSTROPHES.sub("", text)
    if len(bare) == len(text):
        # Marks alone are not a word.
        return [Token(word, m.start(), m.end()) for m in _TOKEN.finditer(text) if m[0] != _PROLONGED and (word := folded(m[0]))]
    shifts = [m.start() - index for index, m in enumerate(_APOSTROPHES.finditer(text))]
    spans: list[Token] = []
    passed = 0
    for m in _TOKEN.finditer(bare):
        while passed < len(shifts) and shifts[passed] <= m.start():
            passed += 1
        begin = m.start() + passed
        while passed < len(shifts) and shifts[passed] < m.end():
            passed += 1
        if word := folded(m[0]):
            spans.append(Token(word, begin, m.end() + passed))
    return spans


def folded(word: str) -> str:
    """Case-fold a word, and remove accents and Arabic vowel signs."""
    return _folded_short(word) if len(word) <= _MOST_CACHED else _HARAKAT.sub("", fold(word))


@lru_cache(maxsize=8192)
def _folded_short(word: str) -> str:
    return _HARAKAT.sub("", fold(word))


class Joined(NamedTuple):
    """Tokens joined for pattern matching, and the end position of each token."""

    text: str
    ends: Sequence[int]


@dataclass(frozen=True)
class Language:
    """A language's phrases by section, as written in its file."""

    code: str
    blankless: bool
    sections: Mapping[str, Sequence[str]]

    def phrases(self, section: str) -> Iterator[tuple[str, ...]]:
        """Yield the tokens of each phrase in a section, once per alternative."""
        for line in self.sections.get(section, ()):
            for choice in product(*map(_alternatives, line.split())):
                phrase = tuple(token.word for token in tokens(" ".join(choice)))
                if phrase:
                    yield phrase

    def words(self, section: str) -> frozenset[str]:
        """Return the phrases in a section as strings."""
        return frozenset(self._between.join(phrase) for phrase in self.phrases(section))

    def vocabulary(self, *sections: str) -> frozenset[str]:
        lines = (line for section in sections for line in self.sections.get(section, ()))
        return frozenset(token.word for line in lines for token in tokens(line.replace("_", " ")))

    def join(self, text_tokens: Sequence[Token]) -> Joined:
        ends: list[int] = []
        length = 0
        for token in text_tokens:
            length += len(token.word) + len(self._between)
            ends.append(length)
        return Joined("".join(token.word + self._between for token in text_tokens), ends)

    def pattern(self, section: str) -> re.Pattern[str]:
        """Return a pattern that matches joined tokens if they form a phrase.

        Use it with `match`. For phrases that begin with `*`, use `suffix_pattern`.
        """
        lines = [line for line in self.sections.get(section, ()) if not line.startswith(REST)]
        # More specific phrases come first.
        return _either(map(self._source, sorted(lines, key=lambda line: REST not in line.split()[:-1])))

    def suffix_pattern(self, section: str) -> re.Pattern[str]:
        """Return a pattern for the phrases that begin with `*`."""
        lines = [line for line in self.sections.get(section, ()) if line.startswith(REST)]
        return _either((self._source(line[1:]) for line in lines), "" if self.blankless else r"(?<=\s)")

    def openings(self, section: str) -> re.Pattern[str]:
        """Return a pattern for tokens that begin with a phrase, longest first."""
        return _either(self._source(line + REST) for line in sorted(self.sections.get(section, ()), key=len, reverse=True))

    def closings(self, section: str) -> re.Pattern[str]:
        """Return a pattern for tokens that end with a phrase."""
        return _either(map(self._source, self.sections.get(section, ())), "" if self.blankless else r"(?<=\s)")

    def anywhere(self, section: str) -> re.Pattern[str]:
        """Return a pattern that finds a phrase anywhere. Use it with `search`."""
        lines = self.sections.get(section, ())
        return _either((self._source(line + REST) for line in lines), "" if self.blankless else r"(?:^|(?<=\s))")

    def _choices(self, part: str) -> Iterator[str]:
        for choice in _alternatives(part):
            if choice.startswith("<"):
                yield from self.sections[choice[1:-1].replace("_", " ")]
            else:
                yield choice

    @property
    def _between(self) -> str:
        return "" if self.blankless else " "

    def _source(self, line: str) -> str:
        rest = line.rstrip().endswith(REST)
        parts: list[str] = []
        for part in line.rstrip(" *").split():
            if part == REST:
                parts.append("(.+?)" if self.blankless else r"((?:\S+ )+?)")
                continue
            if part.strip("()") == ANY_WORD:
                parts.append(r"(?:\S+ )" + ("?" if part.startswith("(") else ""))
                continue
            named = part.removeprefix(ANY_WORD)
            choices = dict.fromkeys(self._between.join(token.word for token in tokens(choice)) for choice in self._choices(named) if choice)
            either = "|".join(re.escape(choice + self._between) for choice in sorted(choices, key=len, reverse=True))
            parts.append(f"(?:{either})" + ("?" if part.startswith("(") else "") if named == part else rf"(?!{either})\S+ ")
        return "(?:" + "".join(parts) + ("" if rest else "$") + ")"


def _either(sources: Iterable[str], before: str = "") -> re.Pattern[str]:
    either = "|".join(sources)
    return re.compile(f"{before}(?:{either})") if either else NOTHING


def _alternatives(part: str) -> list[str]:
    optional = part.startswith("(") and part.endswith(")")
    choices = (part[1:-1] if optional else part).replace("_", " ").split("|")
    return ["", *choices] if optional else choices


@lru_cache(maxsize=1)
def languages() -> Mapping[str, Language]:
    return {code: _read(code) for code in CODES}


@lru_cache(maxsize=32)
def function_words(code: str) -> frozenset[str]:
    """Return a language's function words, or an empty set if none are listed."""
    return languages()[code].vocabulary("function words") if code in CODES else frozenset()


def _read(code: str) -> Language:
    text = resources.files("agent_memory.foundation.text").joinpath("data", f"{code}.txt").read_text(encoding="utf-8")
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        if line.startswith("[") and line.endswith("]"):
            current = sections.setdefault(line[1:-1], [])
        else:
            current += [phrase for part in line.split(",") if (phrase := part.strip())]
    return Language(code, "blankless" in sections, sections)
