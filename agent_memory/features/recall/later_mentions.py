"""Add later statements about things mentioned in the prompt's memories. Pure functions, no I/O.

For example, a search for "Where do I live?" finds "I live on Candle Street 8.", but not "Candle
Street was damp, I am back on Ropewalk 3.".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agent_memory.features.memories.shown_memories import ShownMemory
from agent_memory.features.recall.contradictions import corrections_of
from agent_memory.features.recall.lines import line_date, speaker_name
from agent_memory.features.recall.memory_list import only_asks
from agent_memory.features.recall.referents import Referent, referents
from agent_memory.foundation.text.dates.tables import calendar_names
from agent_memory.foundation.text.terms import fold, words

# Limits per prompt: things to look for, newest statements about each thing, statements added for a shared name.
_MOST_THINGS = 4
_MOST_STATEMENTS = 2
_MOST_BY_NAME = 4
# A capitalized word inside a sentence. The first word does not count, because it always has a capital.
_NAME = re.compile(r"(?<![.!?:…] )(?<=\s)(?!I\b)[A-ZÀ-ÖØ-Þ][\w’'-]{1,40}")


_Names = dict[tuple[str | None, str, str], tuple[datetime, str]]
"""Maps (user, speaker, name) to the time and `mid` of the first statement."""


@dataclass(frozen=True, slots=True)
class NamedThing:
    """A thing with a name and a number, such as "Candle Street 8"."""

    memory: ShownMemory
    referent: Referent

    @property
    def since(self) -> datetime:
        return self.memory.last_said_at or self.memory.created_at

    def mentions(self, statements: Iterable[ShownMemory]) -> list[ShownMemory]:
        """Return up to two later statements by the same speaker about this thing, newest first."""
        memory = self.memory
        writer = (memory.user_id, memory.namespace, memory.agent_id, speaker_name(memory))
        later = [
            each
            for each in statements
            if each.created_at > self.since
            and (each.user_id, each.namespace, each.agent_id, speaker_name(each)) == writer
            and self.referent.is_named_in(each.text)
        ]
        return sorted(later, key=lambda each: each.created_at, reverse=True)[:_MOST_STATEMENTS]


def named_things(page: Sequence[ShownMemory]) -> Sequence[NamedThing]:
    """Return up to four things mentioned in statements on the page, in page order."""
    statements = [memory for memory in page if memory.is_message and not only_asks(memory)]
    by_wording = {referent.wording: NamedThing(memory, referent) for memory in reversed(statements) for referent in referents(memory.text)}
    return [*by_wording.values()][-_MOST_THINGS:][::-1]


def with_mentions(
    page: Sequence[ShownMemory], statements_by_thing: Iterable[tuple[NamedThing, Iterable[ShownMemory]]]
) -> list[ShownMemory]:
    """Return the page with each later statement inserted after its related memory."""
    shown_mids, behind = {memory.mid for memory in page}, dict[str, list[ShownMemory]]()
    for named_thing, statements in statements_by_thing:
        for memory in named_thing.mentions(statements):
            if memory.mid not in shown_mids:
                shown_mids.add(memory.mid)
                memory.beside = named_thing.memory.mid
                behind.setdefault(named_thing.memory.mid, []).append(memory)
    return [each for memory in page for each in (memory, *behind.get(memory.mid, ()))]


def with_what_names_the_same(page: Sequence[ShownMemory], further: Sequence[ShownMemory]) -> Sequence[ShownMemory]:
    """Return the page plus statements from `further` that share a name with earlier ones."""
    if not further:
        return page
    shown_mids = {memory.mid for memory in page}
    since: _Names = {}
    for memory in page:
        _note_names(memory, since)
    left = [memory for memory in further if memory.mid not in shown_mids and _tells_of_a_name(memory)]
    added: list[ShownMemory] = []
    while len(added) < _MOST_BY_NAME:
        following, beside = next(((memory, mid) for memory in left if (mid := _named_by(memory, since)) is not None), (None, None))
        if following is None:
            break
        following.beside = beside
        left.remove(following)
        added.append(following)
        _note_names(following, since, at=min(since.values())[0])
    return [*page, *added] if added else page


def _tells_of_a_name(memory: ShownMemory) -> bool:
    """True if a memory is a statement by anyone but the assistant."""
    return memory.is_message and not only_asks(memory) and memory.values["metadata"].get("role") != "assistant"


def _note_names(memory: ShownMemory, since: _Names, at: datetime | None = None) -> None:
    if not _tells_of_a_name(memory):
        return
    for name in _NAME.findall(memory.text):
        folded = fold(name).removesuffix("'s").removesuffix("’s")
        key = (memory.user_id, speaker_name(memory), folded)
        if name.lower() not in calendar_names():
            noted = (at or memory.created_at, memory.beside or memory.mid)
            since[key] = min(since.get(key, noted), noted)


def _named_by(memory: ShownMemory, since: _Names) -> str | None:
    """Return the mid of an earlier statement that shares a name with this one, or None."""
    speaker = speaker_name(memory)
    candidates = (since.get((memory.user_id, speaker, word)) for word in dict.fromkeys(words(memory.text)))
    return next((noted[1] for noted in candidates if noted is not None and memory.created_at > noted[0]), None)


def with_corrections(page: Sequence[ShownMemory], further: Sequence[ShownMemory]) -> Sequence[ShownMemory]:
    """Return the page plus statements from `further` that correct a statement on it."""
    shown_mids, candidates = {memory.mid for memory in page}, [memory for memory in further if not only_asks(memory)]
    if not candidates:
        return page
    statements = [memory for memory in page if memory.is_message and not only_asks(memory)]
    by_id = {memory.id: memory for memory in candidates}
    last = corrections_of(sorted([*statements, *by_id.values()], key=lambda memory: (line_date(memory), memory.id)))
    added: dict[str, ShownMemory] = {}
    for memory in statements:
        correction = by_id.get(last.get(memory.id, ""))
        if correction is not None and correction.mid not in shown_mids and correction.id not in added:
            correction.beside = memory.mid
            added[correction.id] = correction
    return [*page, *added.values()] if added else page
