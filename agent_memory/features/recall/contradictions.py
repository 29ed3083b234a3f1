"""Find contradictory statements and the latest in each group. Pure functions, no I/O.

Two statements by the same speaker contradict each other if any of these conditions is met:

- They fill the same slot.
- They differ, but they or two of their clauses share more than half of their words.
- The later one gives a new time for a plan that both mention.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from agent_memory.features.memories.shown_memories import ShownMemory
from agent_memory.features.recall.lines import speaker_name
from agent_memory.foundation.text.dates.named_times import names_time, without_times
from agent_memory.foundation.text.languages.phrases import BLANKLESS, CODES, function_words, languages, tokens
from agent_memory.foundation.text.statements import worth_asking
from agent_memory.foundation.text.terms import STOP_WORDS, fold

# Share of the shorter statement's words that the other must contain. Scripts without spaces are compared by pairs of
# characters, with a lower share, because one changed character changes two pairs.
_ALIKE, _ALIKE_PAIRS = 0.6, 0.5
# Longer texts say several things, so they are not compared. Limits in characters, content words and pairs.
_MOST_CHARS, _MOST_WORDS, _MOST_PAIRS = 160, 12, 24
_WORDS = (
    "a an the so very really i i'm im i've i'd my me mine we our you your he she it its is am are was were be been do does did have has had"
    " to of in on at for with that this there and or but as than then now still again anymore any more actually no not never don't doesn't"
    " didn't isn't wasn't anyway new also just well ok okay btw"
)
_EDGES = ".,;:!?…\"“”‘’'()[]{}<>*`"
_LITTLE = frozenset(["", *_WORDS.split()])
_CLAUSE = re.compile(r"[.!?;:,]\s+|\s[-–—]\s")
_PLACE = r"\b(?:to|into|in|from) (?:the |my |our )?"
_LEAST_IN_CLAUSE = 3


_Part = tuple[frozenset[str], float]
"""Distinctive words, and how many of them another statement must share."""
_NONE: _Part = (frozenset(), 0.0)


def corrections_of(statements: Sequence[ShownMemory]) -> Mapping[str, str]:
    """Map the id of each contradicted statement to the id of its last correction.

    `statements` must be sorted oldest first.
    """
    of_speaker: dict[tuple[str, str | None], list[tuple[int, frozenset[str], float, str | None]]] = {}
    # Maps a statement's position to the position of its correction, which is always higher.
    last_of: dict[int, int] = {}
    for position, memory in enumerate(statements):
        (words, needed), slot = _part_of(memory.text), memory.values.get("slot")
        if not words and slot is None:
            continue
        size, moved = len(words), not _changes().isdisjoint(words)
        before = of_speaker.setdefault((speaker_name(memory), memory.user_id), [])
        earlier: list[int] = []
        for other, earlier_words, its_needed, its_slot in before:
            shared = len(words & earlier_words)
            if shared > 1:
                least = needed if needed < its_needed else its_needed
                alike = shared >= least or _clauses_alike(memory.text, statements[other].text)
            else:
                alike = shared == 1 and (size == 1 or len(earlier_words) == 1)
            alike = alike and _share_subject(words & earlier_words, memory.text)
            alike = alike or (moved and shared > 0 and _is_moved(words & earlier_words, memory.text, statements[other].text))
            if alike or (slot is not None and slot == its_slot):
                earlier.append(other)
        before.append((position, words, needed, slot))
        if earlier:
            subjects = {_last_of(last_of, each) for each in earlier}
            last_of.update(dict.fromkeys(subjects, position))
    return {statements[each].id: statements[_last_of(last_of, each)].id for each in last_of}


def _share_subject(shared: frozenset[str], text: str) -> bool:
    return any(worth_asking(word) for word in (shared - _frequent_words()) & _part_of(without_times(text))[0])


@lru_cache(maxsize=1)
def _changes() -> frozenset[str]:
    return frozenset().union(*(language.words("moved plans") for language in languages().values()))


def _is_moved(shared: frozenset[str], text: str, earlier: str) -> bool:
    """True if a text gives a new time for a plan in the earlier text."""
    topic_words = shared - _changes() - _frequent_words()
    if not topic_words or not (_tells_time(text) and _tells_time(earlier)):
        return False
    folded = fold(text)
    return any(not _tells_time(word) and re.search(_PLACE + re.escape(word), folded) is None for word in topic_words)


@lru_cache(maxsize=1)
def _frequent_words() -> frozenset[str]:
    return frozenset(fold(word) for code in CODES for word in function_words(code)) | STOP_WORDS


def _tells_time(text: str) -> bool:
    return any(map(str.isdigit, text)) or names_time(text)


def _last_of(later: Mapping[int, int], position: int) -> int:
    while position in later:
        position = later[position]
    return position


def _clauses_alike(text: str, other: str) -> bool:
    clauses, others = _CLAUSE.split(text), _CLAUSE.split(other)
    if len(clauses) == 1 and len(others) == 1:
        return False
    parts, its_parts = ([part for part in map(_part_of, group) if len(part[0]) >= _LEAST_IN_CLAUSE] for group in (clauses, others))
    for words, needed in parts:
        for its_words, its_needed in its_parts:
            shared = len(words & its_words)
            if shared > 1 and shared >= needed and shared >= its_needed:
                return True
    return False


def _part_of(text: str) -> _Part:
    if len(text) > _MOST_CHARS:
        return _NONE
    if not text.isascii() and BLANKLESS.search(text) is not None:
        pairs = frozenset([one + other for one, other in pairwise([token.word for token in tokens(text)])])
        return (pairs, _ALIKE_PAIRS * len(pairs)) if len(pairs) <= _MOST_PAIRS else _NONE
    folded = text.lower() if text.isascii() else fold(text)
    words = frozenset([word.strip(_EDGES) for word in folded.split()]) - _LITTLE
    return (words, _ALIKE * len(words)) if len(words) <= _MOST_WORDS else _NONE
