"""Create the Redis keys for procedures and tool statistics."""

from __future__ import annotations


class ProcedureKeys:
    """Creates the Redis keys for procedures in one bucket. `feature.py` describes each key."""

    def __init__(self, root: str) -> None:
        self.prefix = f"{root}pr:"
        """The prefix of the keys of procedures and tools; the search index covers all keys with this prefix."""
        self.failing = f"{root}prf"
        """The key of the set of procedures with failures that no worker has checked yet."""
        self._root = root

    def procedure(self, pid: str) -> str:
        """Return the key of a procedure or of a tool's statistics."""
        return f"{self.prefix}{pid}"

    def changes(self, pid: str) -> str:
        return f"{self.prefix}{pid}:c"

    def feedback(self, pid: str) -> str:
        return f"{self.prefix}{pid}:f"

    def learned(self, owner: str) -> str:
        """Return the key of the counter of procedures learned for an owner. The counter detects concurrent learning."""
        return f"{self._root}po:{owner}"
