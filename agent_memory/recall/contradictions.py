"""Statements of a prompt that may contradict each other: which of them is the latest (pure).

Two statements of one speaker contradict each other when they have a slot in common, or say nearly the same with another number, name or
negation. What says less than half of the same words is about something else. It only looks at a handful of short lines, and costs as much.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_memory.memories.shown_memories import ShownMemory
from agent_memory.recall.lines import speaker_name
from agent_memory.text.terms import fold

# Of the words of the shorter one, so many must stand in the other.
_ALIKE = 0.6
# What is longer says more than one thing. In characters, and in words that count.
_MOST_CHARS, _MOST_WORDS = 160, 12
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
    of_speaker: dict[tuple[str, str | None], list[tuple[str, frozenset[str], int, str | None]]] = {}
    latest: list[str] = []
    superseded: set[str] = set()
    for memory in statements:
        words, slot = _words_of(memory.text), memory.values.get("slot")
        size = len(words)
        if not size and slot is None:
            continue
        before = of_speaker.setdefault((speaker_name(memory), memory.user_id), [])
        earlier: list[str] = []
        for name, said, other, its_slot in before:
            # All pairs come by here.
            shared = len(words & said)
            shorter = size if size < other else other
            if (shared and shared >= _ALIKE * shorter and (shared > 1 or shorter == 1)) or (slot is not None and slot == its_slot):
                earlier.append(name)
        before.append((memory.id, words, size, slot))
        if earlier:
            superseded.update(earlier)
            latest.append(memory.id)
    return frozenset(latest) - superseded


def _words_of(text: str) -> frozenset[str]:
    """What a short statement is about, without the words that all of them share; nothing for a long one."""
    if len(text) > _MOST_CHARS:
        return _NONE
    folded = text.lower() if text.isascii() else fold(text)
    words = frozenset([word.strip(_EDGES) for word in folded.split()]) - _LITTLE
    return words if len(words) <= _MOST_WORDS else _NONE
