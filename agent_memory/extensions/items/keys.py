"""The keys of an owner's items. An item's own (`Keys.item`) belongs to the outbox, too."""

from __future__ import annotations

from agent_memory.foundation.storage.keyspace import digest


class ItemKeys:
    """The keys of items in one bucket: see `ITEMS.keys` in `feature.py`."""

    def __init__(self, root: str) -> None:
        self.prefix = f"{root}it:"
        """What the index holds begins so."""
        self._root = root

    def entries(self, owner: str) -> str:
        """The items of an owner, by path and key."""
        return f"{self._root}its:{owner}"

    def expiries(self, owner: str) -> str:
        """Those that have a time to live, by its end."""
        return f"{self._root}itx:{owner}"

    def paths(self, owner: str) -> str:
        """How many items each path of an owner has."""
        return f"{self._root}itn:{owner}"

    def owners(self, tenant: str) -> str:
        """The owners of items of a tenant."""
        return f"{self._root}ito:{digest('item owners', tenant)}"
