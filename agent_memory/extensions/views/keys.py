"""Create the Redis keys for summary views."""

from __future__ import annotations

from agent_memory.foundation.storage.keyspace import digest


class ViewKeys:
    """Creates the Redis keys for summary views in one bucket. `feature.py` describes each key."""

    def __init__(self, root: str) -> None:
        self.tenants = f"{root}svt"
        """The key of the set of tenants that have, or had, views."""
        self._root = root

    def views(self, tenant: str) -> str:
        return f"{self._root}sv:{digest('views', tenant)}"

    def partitions(self, tenant: str, view_id: str) -> str:
        return f"{self._root}svp:{digest('view', tenant, view_id)}"
