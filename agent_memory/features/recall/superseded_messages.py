"""Messages of a prompt that a later fact has made untrue, and what was said again since (pure)."""

from __future__ import annotations

from datetime import datetime

from agent_memory.features.memories.shown_memories import ShownMemory


def no_longer_true_since(memory: ShownMemory) -> datetime | None:
    """Since when what a message says is no longer true; None for what was said again since."""
    ended = memory.ended_at
    return ended if ended is not None and (memory.last_said_at is None or memory.last_said_at <= ended) else None
