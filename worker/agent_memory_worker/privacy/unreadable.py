"""Collect unreadable records, so that an erasure or purge can continue."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from agent_memory.foundation.core.errors import AgentMemoryError
from agent_memory.foundation.core.logs import get_logger

log = get_logger(__name__)

_MOST_NAMED = 20


class UnreadableRecords:
    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._names)

    def add(self, name: str) -> None:
        if name not in self._names:
            self._names[name] = None
            log.error("unreadable record skipped", record=name, hint="repair or delete it in Redis")

    @contextmanager
    def passing_over(self, name: str) -> Generator[None]:
        """Record the name and continue if the `with` block fails.

        AgentMemoryErrors are re-raised.
        """
        try:
            yield
        except AgentMemoryError:
            raise
        except Exception as error:
            log.debug("record cannot be read", record=name, error=error, exc_info=error)
            self.add(name)

    @property
    def counts(self) -> dict[str, int]:
        """Return the counts for a receipt, or {} if all records were readable."""
        return {"unreadable": len(self._names)} if self._names else {}

    @property
    def note(self) -> str | None:
        if not self._names:
            return None
        more = f" and {len(self._names) - _MOST_NAMED} more" if len(self._names) > _MOST_NAMED else ""
        return f"records that cannot be read: {', '.join(list(self._names)[:_MOST_NAMED])}{more}"
