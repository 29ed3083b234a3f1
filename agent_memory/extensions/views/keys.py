"""Keys of summary views."""

from __future__ import annotations

from agent_memory.foundation.storage.keyspace import digest


class ViewKeys:
    """Keys of summary views in one bucket: see `feature.py`."""

    def __init__(self, root: str) -> None:
        self.tenants = f"{root}svt"
        """Tenants that have had views."""
        self._root = root

    def views(self, tenant: str) -> str:
        return f"{self._root}sv:{digest('views', tenant)}"

    def partitions(self, tenant: str, view_id: str) -> str:
        return f"{self._root}svp:{digest('view', tenant, view_id)}"
