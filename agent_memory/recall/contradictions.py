"""Statements of a prompt that may contradict each other: which of them is the latest (pure).

Two statements of one speaker contradict each other when they have a slot in common, or say nearly the same with another number, name or
negation. What says less than half of the same words is about something else. It only looks at a handful of short lines, and costs as much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agent_memory.memories.search.near_duplicates import content_words
from agent_memory.memories.shown_memories import ShownMemory
from agent_memory.recall.lines import speaker_name

# Of the words of the shorter one, so many must stand in the other.
_ALIKE = 0.6
# What is longer says more than one thing. In characters, and in words that count.
_MOST_CHARS, _MOST_WORDS = 160, 12
_WORDS = (
    "i i'm im i've i'd my me mine we our you your he she it its is am are was were be been do does did have has had to of in on at for with"
    " that this there and or but as than then now still again anymore any more actually no not never don't doesn't didn't isn't wasn't"
)
_LITTLE = frozenset(_WORDS.split())


def latest_of(statements: Sequence[ShownMemory]) -> frozenset[str]:
    """The ids of those that say last what another one before them says otherwise; the statements are given oldest first."""
    words = {memory.id: said for memory in statements if (said := _words_of(memory))}
    by_word: dict[object, list[int]] = {}
    superseded: set[int] = set()
    later: set[int] = set()
    for position, memory in enumerate(statements):
        own = words.get(memory.id)
        slot = memory.values.get("slot")
        if own is None and slot is None:
            continue
        speaker = (speaker_name(memory), memory.user_id)
        shared: Counter[int] = Counter()
        for word in own or ():
            shared.update(by_word.get((speaker, word), ()))
        same_slot = by_word.get((speaker, "slot", slot), ()) if slot is not None else ()
        earlier = [before for before, count in shared.items() if _near(own or frozenset(), words[statements[before].id], count)]
        if earlier or same_slot:
            superseded.update(earlier, same_slot)
            later.add(position)
        for word in own or ():
            by_word.setdefault((speaker, word), []).append(position)
        if slot is not None:
            by_word.setdefault((speaker, "slot", slot), []).append(position)
    return frozenset(statements[position].id for position in later - superseded)


def _words_of(memory: ShownMemory) -> frozenset[str] | None:
    """What a short statement is about, without the words that all of them share; None for a long one."""
    if len(memory.text) > _MOST_CHARS:
        return None
    own = frozenset(content_words(memory.text)) - _LITTLE
    return own if 0 < len(own) <= _MOST_WORDS else None


def _near(own: frozenset[str], other: frozenset[str], shared: int) -> bool:
    shorter = min(len(own), len(other))
    return shared >= min(2, shorter) and shared >= _ALIKE * shorter
