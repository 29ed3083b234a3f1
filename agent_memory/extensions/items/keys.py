"""Keys of an owner's items. The outbox shares an item's own key (`Keys.item`)."""

from __future__ import annotations

from agent_memory.foundation.storage.keyspace import digest


class ItemKeys:
    """Keys of items in one bucket: see `feature.py`."""

    def __init__(self, root: str) -> None:
        self.prefix = f"{root}it:"
        """Prefix of the indexed keys."""
        self._root = root

    def entries(self, owner: str) -> str:
        return f"{self._root}its:{owner}"

    def expiries(self, owner: str) -> str:
        """Return the key of items with a time to live, by its end."""
        return f"{self._root}itx:{owner}"

    def paths(self, owner: str) -> str:
        return f"{self._root}itn:{owner}"

    def owners(self, tenant: str) -> str:
        return f"{self._root}ito:{digest('item owners', tenant)}"
