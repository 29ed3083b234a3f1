"""Keys of procedures and tool statistics."""

from __future__ import annotations


class ProcedureKeys:
    """Keys of procedures in one bucket: see `feature.py`."""

    def __init__(self, root: str) -> None:
        self.prefix = f"{root}pr:"
        """Prefix of the indexed keys."""
        self.failing = f"{root}prf"
        """Procedures with failures that no worker has looked at yet."""
        self._root = root

    def procedure(self, pid: str) -> str:
        """Return the key of a procedure or of a tool's statistics."""
        return f"{self.prefix}{pid}"

    def changes(self, pid: str) -> str:
        return f"{self.prefix}{pid}:c"

    def feedback(self, pid: str) -> str:
        return f"{self.prefix}{pid}:f"

    def learned(self, owner: str) -> str:
        """Return the key of an owner's learning counter, the fence of learned procedures."""
        return f"{self._root}po:{owner}"
