from __future__ import annotations

from datetime import datetime

from agent_memory.features.memories.shown_memories import ShownMemory


def no_longer_true_since(memory: ShownMemory) -> datetime | None:
    """Return since when a message is no longer true; None if it was said again since."""
    ended = memory.ended_at
    return ended if ended is not None and (memory.last_said_at is None or memory.last_said_at <= ended) else None
