"""Find memories in a search result that repeat another memory. Pure functions.

A repeat has the same owner and words. Events and messages must also have the same day.
"""

from __future__ import annotations

from agent_memory.features.memories.shown_memories import ShownMemory
from agent_memory.foundation.text.retrieval_units import day
from agent_memory.foundation.text.terms import fold
from agent_memory_client.models import MemoryTypeEnum

_EDGES = ".,;:!…\"“”‘’'()[]{}<>*`"
_WORDS = "a an the oh well yes yeah so and also just really very indeed please"
_FILLERS = frozenset(_WORDS.split())
_TIMELESS_TYPES = (MemoryTypeEnum.SEMANTIC, MemoryTypeEnum.PROCEDURAL)

Key = tuple[object, ...]


def deciding_words(text: str) -> tuple[str, ...]:
    """Return a text's words except fillers, or all words if there is nothing else."""
    words = [bare for chunk in fold(text).split() if (bare := chunk.strip(_EDGES))]
    return tuple(word for word in words if word not in _FILLERS) or tuple(words) or (text,)


def _ends(text: str) -> tuple[str, str] | None:
    """Return the first and last words that are not fillers, or None."""
    folded = text.lower() if text.isascii() else fold(text)
    outer = folded.split(None, 1)
    first, last = (_bare(outer[0]), _bare(folded.rsplit(None, 1)[-1])) if outer else ("", "")
    if first and last:
        return first, last
    chunks = folded.split()
    first = next(filter(None, map(_bare, chunks)), None)
    return None if first is None else (first, next(filter(None, map(_bare, reversed(chunks)))))


def _bare(chunk: str) -> str:
    word = chunk.strip(_EDGES)
    return "" if word in _FILLERS else word


class DuplicateFilter:
    def __init__(self) -> None:
        self._timeless: dict[Key, str] = {}
        self._dated: dict[Key, str] = {}
        # Keyed by owner, first word and last word. Only a collision, which is rare, needs the full texts.
        self._unread: dict[Key, list[ShownMemory]] = {}

    def add_memory(self, memory: ShownMemory) -> str | None:
        """Return the id of an earlier memory that this one repeats, or add it and return None."""
        key = (memory.user_id, memory.namespace, _ends(memory.text))
        alike = self._unread.get(key)
        if alike is None:
            self._unread[key] = [memory]
            return None
        for earlier in alike:
            self._add_words(earlier)
        alike.clear()
        return self._add_words(memory)

    def _add_words(self, memory: ShownMemory) -> str | None:
        words = (memory.user_id, memory.namespace, deciding_words(memory.text))
        of_day: Key = (*words, day(memory.event_date or memory.created_at))
        # Facts without a date repeat each other on any day. Events on two days are two events.
        timeless: Key = (*words, None if memory.event_date is None else day(memory.event_date))
        first = self._dated.get(of_day)
        if first is None and memory.memory_type in _TIMELESS_TYPES:
            first = self._timeless.get(timeless)
        if first is not None:
            return first
        self._dated[of_day] = memory.id
        if memory.memory_type in _TIMELESS_TYPES:
            self._timeless[timeless] = memory.id
        return None
