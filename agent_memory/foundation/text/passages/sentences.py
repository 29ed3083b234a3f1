"""Split a text into sentences."""

from __future__ import annotations

import re

from agent_memory.foundation.core.tables import read_table

_MAX_SENTENCE = 1000  # characters

_CLOSING = "\"'”’»)\\]」』）"
# The pattern visits a run of marks only once, at its beginning.
_CANDIDATE = re.compile(rf"(?<![.!?…])[.!?…]++[{_CLOSING}*_]*+(?=\s)|[。！？｡]+[{_CLOSING}]*|\n\s*")
_WORDS = read_table("text/data/words/common.toml")
_TITLES, _COUNTED = frozenset(_WORDS["titles"].split()), frozenset(_WORDS["counted"].split())
# German ordinals: "am 2. Juni", "der 3. Stock".
_ORDINAL = re.compile(
    r"\b(?:am|vom|zum|bis|im|ab|beim|seit|nach|de[rnms]|die|das|jede[nrms]?|und|ihre?[nrm]?|meine?[nrm]?) \d{1,2}\.$",
    re.IGNORECASE,
)
_MONTHS = ("Januar", "Jänner", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober", "November", "Dezember")
_WORD_BEFORE = re.compile(r"([^\W\d_](?:[\w.]{0,21}[^\W\d_])?)\.$")
_BEFORE_CHARS = 23  # how far before a full stop an abbreviation may begin
_NUMBERED = re.compile(r"(?:^|\n)\s{0,4}\d{1,3}\.$")


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences of at most 1,000 characters each.

    A line break ends a sentence unless a lowercase letter follows.
    """
    sentences: list[str] = []
    start = 0
    for match in _CANDIDATE.finditer(text):
        if _ends_sentence(text, start, match):
            sentences.extend(_pieces(text[start : match.end()]))
            start = match.end()
    sentences.extend(_pieces(text[start:]))
    return sentences


def _ends_sentence(text: str, start: int, match: re.Match[str]) -> bool:
    mark = match[0]
    following = text[match.end() : match.end() + 40].lstrip()
    if "\n" in mark:
        return not following[:1].islower()
    if not mark.startswith(".") or mark.startswith("..."):
        return not (mark.startswith(("...", "…")) and following[:1].islower())
    if following[:1].islower():
        return False
    before = text[max(start, match.start() - _BEFORE_CHARS) : match.start() + 1]
    if before[-2:-1].isdigit() and (_ORDINAL.search(before) or following.startswith(_MONTHS)):
        return False
    if _NUMBERED.search(before[-6:]) and len(before.strip()) <= 4:  # "3. Buy milk"
        return False
    word = _WORD_BEFORE.search(before)
    if word is None:
        return True
    initial = len(word[1]) == 1 and word[1].isupper() and word[1] != "I"  # "J. Smith", but "and I."
    name = word[1].lower()
    return not (initial or name in _TITLES or (name in _COUNTED and following[:1].isdigit()))


def _pieces(sentence: str) -> list[str]:
    sentence = " ".join(sentence.split())
    pieces: list[str] = []
    at = 0
    while len(sentence) - at > _MAX_SENTENCE:
        space = sentence.rfind(" ", at + 1, at + _MAX_SENTENCE)
        cut = space if space > 0 else at + _MAX_SENTENCE
        pieces.append(sentence[at:cut])
        at = cut + (sentence[cut] == " ")
    return [*pieces, sentence[at:]] if at < len(sentence) else pieces
