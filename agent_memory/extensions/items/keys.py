"""Keys of an owner's items. The outbox shares an item's own key (`Keys.item`)."""

from __future__ import annotations

from typing import NamedTuple

from agent_memory.foundation.storage.keyspace import digest


class OwnerKeys(NamedTuple):
    """What the scripts take of an owner: keys, and the owner's name in them."""

    items: str
    expiries: str
    paths: str
    owners: str
    root: str
    owner: str


class ItemKeys:
    """Keys of items in one bucket: see `feature.py`."""

    def __init__(self, root: str) -> None:
        self.prefix = f"{root}it:"
        """Prefix of the indexed keys."""
        self._root = root

    def of(self, tenant: str, owner: str) -> OwnerKeys:
        root = self._root
        return OwnerKeys(f"{root}its:{owner}", self.expiries(owner), f"{root}itn:{owner}", self.owners(tenant), root, owner)

    def expiries(self, owner: str) -> str:
        """Return the key of items with a time to live, by its end."""
        return f"{self._root}itx:{owner}"

    def owners(self, tenant: str) -> str:
        return f"{self._root}ito:{digest('item owners', tenant)}"
