"""Count the items and paths that a batch reads, so that the service can limit them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class ItemsRead:
    count: int = 0


_METER: ContextVar[ItemsRead | None] = ContextVar("agent_memory.items_read", default=None)


@contextmanager
def counting_reads() -> Generator[ItemsRead]:
    """Count all items and paths read inside the `with` block."""
    read = ItemsRead()
    token = _METER.set(read)
    try:
        yield read
    finally:
        _METER.reset(token)


def note_read(count: int) -> None:
    if (meter := _METER.get()) is not None:
        meter.count += count
