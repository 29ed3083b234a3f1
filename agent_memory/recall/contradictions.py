"""Statements of a prompt that may contradict each other: which of them is the latest (pure).

Two statements of one speaker contradict each other when they have a slot in common, or say nearly the same with another number, name or
negation. What says less than half of the same words is about something else; where no blanks are written, pairs of characters are the
words. It only looks at a handful of short lines, and costs as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from agent_memory.memories.shown_memories import ShownMemory
from agent_memory.recall.lines import speaker_name
from agent_memory.text.languages.phrases import BLANKLESS, tokens
from agent_memory.text.terms import fold

# Of the words of the shorter one, so many must stand in the other; a character that is another one changes two pairs.
_ALIKE, _ALIKE_PAIRS = 0.6, 0.5
# What is longer says more than one thing. In characters, and in words that count, or pairs.
_MOST_CHARS, _MOST_WORDS, _MOST_PAIRS = 160, 12, 24
_WORDS = (
    "a an the so very really i i'm im i've i'd my me mine we our you your he she it its is am are was were be been do does did have has had"
    " to of in on at for with that this there and or but as than then now still again anymore any more actually no not never don't doesn't"
    " didn't isn't wasn't"
)
_EDGES = ".,;:!?…\"“”‘’'()[]{}<>*`"
_LITTLE = frozenset(["", *_WORDS.split()])
_NONE = frozenset[str]()


def latest_of(statements: Sequence[ShownMemory]) -> frozenset[str]:
    """The ids of those that say last what another one before them says otherwise; the statements are given oldest first."""
    of_speaker: dict[tuple[str, str | None], list[tuple[str, frozenset[str], float, str | None]]] = {}
    latest: list[str] = []
    superseded: set[str] = set()
    for memory in statements:
        (words, needed), slot = _words_of(memory.text), memory.values.get("slot")
        if not words and slot is None:
            continue
        size = len(words)
        before = of_speaker.setdefault((speaker_name(memory), memory.user_id), [])
        earlier: list[str] = []
        for name, said, its_needed, its_slot in before:
            # All pairs come by here.
            shared = len(words & said)
            least = needed if needed < its_needed else its_needed
            if (shared and shared >= least and (shared > 1 or size == 1 or len(said) == 1)) or (slot is not None and slot == its_slot):
                earlier.append(name)
        before.append((memory.id, words, needed, slot))
        if earlier:
            superseded.update(earlier)
            latest.append(memory.id)
    return frozenset(latest) - superseded


def _words_of(text: str) -> tuple[frozenset[str], float]:
    """What a short statement is about, without the words that all of them share, and how many of these must be in another one that is about
    the same; nothing for a long one."""
    if len(text) > _MOST_CHARS:
        return _NONE, 0.0
    if not text.isascii() and BLANKLESS.search(text) is not None:
        pairs = frozenset([one + other for one, other in pairwise([token.word for token in tokens(text)])])
        return (pairs, _ALIKE_PAIRS * len(pairs)) if len(pairs) <= _MOST_PAIRS else (_NONE, 0.0)
    folded = text.lower() if text.isascii() else fold(text)
    words = frozenset([word.strip(_EDGES) for word in folded.split()]) - _LITTLE
    return (words, _ALIKE * len(words)) if len(words) <= _MOST_WORDS else (_NONE, 0.0)
