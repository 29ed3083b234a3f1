"""Add later corrections to a prompt's statements, however little they share with the question (pure)."""

from __future__ import annotations

from collections.abc import Sequence

from agent_memory.features.memories.shown_memories import ShownMemory
from agent_memory.features.recall.contradictions import corrections_of
from agent_memory.features.recall.lines import line_date
from agent_memory.features.recall.memory_list import only_asks


def with_corrections(page: Sequence[ShownMemory], further: Sequence[ShownMemory]) -> Sequence[ShownMemory]:
    """Return a page with the further statements that correct one of its statements."""
    there, candidates = {memory.mid for memory in page}, [memory for memory in further if not only_asks(memory)]
    if not candidates:
        return page
    stated = [memory for memory in page if memory.is_message and not only_asks(memory)]
    by_id = {memory.id: memory for memory in candidates}
    last = corrections_of(sorted([*stated, *by_id.values()], key=lambda memory: (line_date(memory), memory.id)))
    added: dict[str, ShownMemory] = {}
    for memory in stated:
        correction = by_id.get(last.get(memory.id, ""))
        if correction is not None and correction.mid not in there and correction.id not in added:
            correction.beside = memory.mid
            added[correction.id] = correction
    return [*page, *added.values()] if added else page
