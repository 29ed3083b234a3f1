"""How much a batch of operations on items looks at: counted where items and paths are read, bounded by who runs the batch."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class ItemsRead:
    """Items and paths that were read so far."""

    count: int = 0


_METER: ContextVar[ItemsRead | None] = ContextVar("agent_memory.items_read", default=None)


@contextmanager
def counting_reads() -> Generator[ItemsRead]:
    """Counts what is read within."""
    read = ItemsRead()
    token = _METER.set(read)
    try:
        yield read
    finally:
        _METER.reset(token)


def note_read(count: int) -> None:
    """Notes items or paths that were read."""
    if (meter := _METER.get()) is not None:
        meter.count += count
