"""Create the Redis keys for an owner's items.

`Keys.item` creates the key of a single item, because the outbox also needs it.
"""

from __future__ import annotations

from typing import NamedTuple

from agent_memory.foundation.storage.keyspace import digest


class OwnerKeys(NamedTuple):
    """Script arguments for an owner: the owner's keys, and the owner's name in Redis keys."""

    items: str
    expiries: str
    paths: str
    owners: str
    root: str
    owner: str


class ItemKeys:
    """Creates the Redis keys for items in one bucket. `feature.py` describes each key."""

    def __init__(self, root: str) -> None:
        self.prefix = f"{root}it:"
        """The prefix of items' keys; the search index covers all keys with this prefix."""
        self._root = root

    def of(self, tenant: str, owner: str) -> OwnerKeys:
        root = self._root
        return OwnerKeys(f"{root}its:{owner}", self.expiries(owner), f"{root}itn:{owner}", self.owners(tenant), root, owner)

    def expiries(self, owner: str) -> str:
        """Return the key of the sorted set of items with a TTL, by expiry time."""
        return f"{self._root}itx:{owner}"

    def owners(self, tenant: str) -> str:
        return f"{self._root}ito:{digest('item owners', tenant)}"
