"""What was said later of a thing that a prompt's memory names: the newer address is told in words that no question has (pure).

"Where do I live?" finds "I live on Candle Street 8.", and neither the words nor the meaning of "Candle Street was damp, I am back on
Ropewalk 3." (to MiniLM 82 to 215 of the 419 to 689 messages of LoCoMo's talks are nearer.) That one names the thing of the other, and says
what has become of it. Few statements name such a thing: 9 of LoCoMo's 2,960.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agent_memory.memories.shown_memories import ShownMemory
from agent_memory.recall.lines import speaker_name
from agent_memory.recall.memory_list import only_asks
from agent_memory.recall.referents import Referent, referents

# A prompt looks for what was said of so many things, and shows so much of each: the newest.
_MOST_THINGS = 4
_MOST_SAID = 2


@dataclass(frozen=True, slots=True)
class NamedThing:
    """A thing that a memory names, and since when something later may have been said of it."""

    memory: ShownMemory
    referent: Referent

    @property
    def since(self) -> datetime:
        """When the memory was last said."""
        return self.memory.last_said_at or self.memory.created_at

    def mentions(self, said: Iterable[ShownMemory]) -> list[ShownMemory]:
        """Those of some statements that the same speaker made of it later, the newest first."""
        memory = self.memory
        whose = (memory.user_id, memory.namespace, memory.agent_id, speaker_name(memory))
        later = [
            each
            for each in said
            if each.created_at > self.since
            and (each.user_id, each.namespace, each.agent_id, speaker_name(each)) == whose
            and self.referent.is_named_in(each.text)
        ]
        return sorted(later, key=lambda each: each.created_at, reverse=True)[:_MOST_SAID]


def named_things(page: Sequence[ShownMemory]) -> Sequence[NamedThing]:
    """The first things that the statements of a page name."""
    statements = [memory for memory in page if memory.is_message and not only_asks(memory)]
    things = {referent.wording: NamedThing(memory, referent) for memory in reversed(statements) for referent in referents(memory.text)}
    return [*things.values()][-_MOST_THINGS:][::-1]


def with_mentions(page: Sequence[ShownMemory], said: Iterable[tuple[NamedThing, Iterable[ShownMemory]]]) -> list[ShownMemory]:
    """A page with what was said later of its things, each behind the memory that names the thing."""
    there, behind = {memory.mid for memory in page}, dict[str, list[ShownMemory]]()
    for thing, statements in said:
        for memory in thing.mentions(statements):
            if memory.mid not in there:
                there.add(memory.mid)
                behind.setdefault(thing.memory.mid, []).append(memory)
    return [each for memory in page for each in (memory, *behind.get(memory.mid, ()))]
