"""Recognize texts with no content, such as greetings and laughter, in fifteen languages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from agent_memory.foundation.text.languages.phrases import Language, languages, tokens
from agent_memory.foundation.text.terms import EDGES, STOP_WORDS, fold

_MOST_CHARS = 20_000
_RUN = re.compile(r"(.)\1+", re.DOTALL)
_LONG_RUN = re.compile(r"(.)\1{2,}", re.DOTALL)
_DIGITS = "0123456789"
_GLUED = frozenset("+#")  # "C" is not "C++"
_BEFORE_SENTENCES = frozenset(["", *'.!?…:;"“„«‹([-–—>*'])
_AS_EMOJI = "\ufe0f"
_LETTERS = re.compile(r"[a-z\u0430-\u044f\u0451\u03b1-\u03c9\u0621-\u064a\u0904-\u0939\u1100-\u1175\u3131-\u318e]")
_LONGEST_WHOLE = 8  # words (or characters) in the longest text that the data files list as a whole
_MOST_QUERY_CHARS = 500


@dataclass(frozen=True, slots=True)
class _Lexicon:
    """A language's filler phrases.

    `filler` maps a phrase to True, or to False if it is filler only next to other filler.
    """

    filler: Mapping[tuple[str, ...], bool]
    squeezed: frozenset[str]
    longest: int

    def covers(self, words: Sequence[str], shapes: Sequence[bool], numbers: bool) -> bool:
        """True if the words are only filler phrases, and at least one is filler by itself.

        `shapes` is True for each word that is noise in any language.
        """
        # For each position: None if no phrase ends there, else True if a phrase up to there is filler alone.
        reached: list[bool | None] = [False]
        for end in range(1, len(words) + 1):
            best: bool | None = None
            for start in range(max(0, end - self.longest), end):
                before = reached[start]
                if before is None:
                    continue
                alone = self._kind(words, shapes, start, end, numbers=numbers)
                if alone is not None:
                    best = bool(best) or before or alone
            reached.append(best)
            if not any(at is not None for at in reached[-self.longest :]):
                return False
        return reached[-1] is True

    def _kind(self, words: Sequence[str], shapes: Sequence[bool], start: int, end: int, *, numbers: bool) -> bool | None:
        if end - start > 1:
            return self.filler.get(tuple(words[start:end]))
        if shapes[start]:
            return True
        word = words[start]
        kind = self.filler.get((word,))
        if kind is not None:
            return kind
        if numbers and word.isdigit():
            return False
        return True if _spoken_out(word, self.squeezed) else None


def _spoken_out(word: str, squeezed: frozenset[str]) -> bool:
    """True if a word is a filler word with repeated letters, such as "hiiii"."""
    if _LONG_RUN.search(word) is not None:
        return _RUN.sub(r"\1", word) in squeezed
    return len(word) > 2 and word[-1] == word[-2] and word not in _beside() and word.rstrip(word[-1]) + word[-1] in squeezed


def is_filler(text: str) -> bool:
    """True if a text consists only of filler words, noise, punctuation and emoji.

    Answers ("No.") and numbers are not filler.
    """
    return len(text) <= _MOST_CHARS and _are_filler(_words(text))


def _are_filler(words: Sequence[str]) -> bool:
    if not words:
        return True
    if len(words) <= _LONGEST_WHOLE and (whole := _whole().get(tuple(words))) is not None:
        return whole
    vocabulary = _vocabulary()
    shapes = [_is_shape(word) for word in words]
    if not all(
        shape or word in vocabulary or _RUN.search(word) is not None or word[-1].isdigit()
        for word, shape in zip(words, shapes, strict=True)
    ):
        return False
    if all(shapes) and (len(words) == 1 or any(len(word) > 1 for word in words)):
        return True
    lexicons, tests = _lexicons(), _tests()
    numbers = any(word.rstrip(_DIGITS) in tests for word in words)
    words = [word.rstrip(_DIGITS) or word if numbers else word for word in words]
    return any(lexicon.covers(words, shapes, numbers) for lexicon in lexicons)


def has_content(query: str) -> bool:
    """True if a query has content. False for "thanks!", "ok", "x" and "👍"."""
    return len(query) > _MOST_QUERY_CHARS or _has_content(query)


@lru_cache(maxsize=256)
def _has_content(query: str) -> bool:
    words = _words(query)
    if (len(words) == 1 and words[0] in _answers()) or _whole().get(tuple(words)) is False:
        # Answers such as "yes" and "me too" ask for nothing.
        return False
    return any(not (len(word) == 1 and _LETTERS.match(word)) for word in words) and not _are_filler(words)


def literal_words(query: str) -> list[str]:
    """Return the words to search for literally if a query has no content ("C++")."""
    vocabulary = _common_words()
    literals: list[str] = []
    chunks = query.split()
    for chunk in chunks:
        word = _spelled(chunk).strip(EDGES)
        # A single capital letter is a name: the language R.
        is_name = chunk.strip(EDGES).isupper() if len(word) == 1 and word.isalpha() else word not in vocabulary
        # A query of one word may be a name, such as "Mia", even if it is a filler word in some language.
        if len(chunks) == 1 and word in vocabulary and _is_sounded(word):
            return [word]
        if word and is_name and not _is_sounded(word) and chunk.lower() not in _emoticons():
            literals.append(word)
    return literals


def holds_literal(text: str, literal: str) -> bool:
    """True if a text contains `literal`, a case-folded word, as a whole word.

    Symbols may appear anywhere. A filler word must be capitalized, and not at the start of a
    sentence.
    """
    if literal in _common_words():
        matches = re.finditer(rf"\b{re.escape(literal)}\b", text, re.IGNORECASE)
        return any(name[0].istitle() and text[: name.start()].rstrip()[-1:] not in _BEFORE_SENTENCES for name in matches)
    folded, start = _spelled(text), -1
    while (start := folded.find(literal, start + 1)) >= 0:
        end = start + len(literal)
        before, after = folded[max(start - 1, 0) : start], folded[end : end + 1]
        if not (literal[0].isalnum() and before.isalnum()) and not (literal[-1].isalnum() and (after.isalnum() or after in _GLUED)):
            return True
    return False


@lru_cache(maxsize=1)
def _common_words() -> frozenset[str]:
    return frozenset(_vocabulary() | _answers() | STOP_WORDS)


def _spelled(text: str) -> str:
    return fold(text).replace(_AS_EMOJI, "")


def _is_sounded(word: str) -> bool:
    return len(word) > 1 and word.isalpha()


def _words(text: str) -> list[str]:
    chunks = [chunk for chunk in text.split() if chunk.lower() not in _emoticons()]
    return [token.word for token in tokens(" ".join(chunks))]


@lru_cache(maxsize=4096)
def _is_shape(word: str) -> bool:
    if len(word) == 1:
        return _LETTERS.match(word) is not None
    letters = frozenset(word)
    if any(len(word) >= least and letters <= syllable for syllable, least in _laughter()):
        return True
    return len(letters) == 1 and len(word) > 2 and not word.isdigit() and _LETTERS.match(word) is not None


@lru_cache(maxsize=1)
def _lexicons() -> Sequence[_Lexicon]:
    by_code = languages()
    international = dict.fromkeys(frozenset(by_code["en"].phrases("filler")).difference(by_code["en"].phrases("only beside")), True)
    return [_lexicon(language, {} if code == "en" else international) for code, language in by_code.items()]


def _lexicon(language: Language, more: Mapping[tuple[str, ...], bool]) -> _Lexicon:
    filler = dict.fromkeys(language.phrases("beside"), False) | dict(more) | dict.fromkeys(language.phrases("filler"), True)
    filler |= dict.fromkeys(language.phrases("test"), True)
    # Words with another meaning in this language are filler only next to other filler.
    filler |= dict.fromkeys(language.phrases("only beside"), False)
    squeezed = frozenset(
        _RUN.sub(r"\1", phrase[0]) for phrase, alone in filler.items() if alone and len(phrase) == 1 and len(phrase[0]) > 1
    )
    return _Lexicon(filler, squeezed, max(map(len, filler)))


@lru_cache(maxsize=1)
def _vocabulary() -> frozenset[str]:
    return frozenset(word for lexicon in _lexicons() for phrase in lexicon.filler for word in phrase)


@lru_cache(maxsize=1)
def _beside() -> frozenset[str]:
    return frozenset(phrase[0] for language in languages().values() for phrase in language.phrases("beside") if len(phrase) == 1)


@lru_cache(maxsize=1)
def _whole() -> Mapping[tuple[str, ...], bool]:
    """Map complete texts to True if they are filler, or to False if they are answers."""
    all_languages = languages().values()
    alone = dict.fromkeys((phrase for language in all_languages for phrase in language.phrases("filler alone")), True)
    return alone | dict.fromkeys((phrase for language in all_languages for phrase in language.phrases("answers")), False)


@lru_cache(maxsize=1)
def _answers() -> frozenset[str]:
    sections = ("beside", "only beside")
    return frozenset(phrase[0] for code in languages().values() for name in sections for phrase in code.phrases(name) if len(phrase) == 1)


@lru_cache(maxsize=1)
def _tests() -> frozenset[str]:
    return frozenset().union(*(language.words("test") for language in languages().values()))


@lru_cache(maxsize=1)
def _laughter() -> Sequence[tuple[frozenset[str], int]]:
    """Return the letters and minimum length for each kind of laughter."""
    return [
        (frozenset(phrase[0]), len(phrase[0]))
        for language in languages().values()
        for phrase in language.phrases("laughter")
        if len(phrase) == 1
    ]


@lru_cache(maxsize=1)
def _emoticons() -> frozenset[str]:
    return frozenset(" ".join(languages()["en"].sections["emoticons"]).lower().split())
