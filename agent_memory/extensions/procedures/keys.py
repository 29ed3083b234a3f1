"""The keys of procedures and of what is known of tools."""

from __future__ import annotations


class ProcedureKeys:
    """The keys of procedures in one bucket: see `PROCEDURES.keys` in `feature.py`."""

    def __init__(self, root: str) -> None:
        self.prefix = f"{root}pr:"
        """What the index holds begins so."""
        self.failing = f"{root}prf"
        """Procedures that did not help, until somebody has looked at them."""
        self._root = root

    def procedure(self, pid: str) -> str:
        """Of a procedure, or of what is known of a tool."""
        return f"{self.prefix}{pid}"

    def changes(self, pid: str) -> str:
        """A procedure's last changes."""
        return f"{self.prefix}{pid}:c"

    def feedback(self, pid: str) -> str:
        """The last feedback on it."""
        return f"{self.prefix}{pid}:f"

    def learned(self, owner: str) -> str:
        """How often something was learned for an owner, the fence of what is learned."""
        return f"{self._root}po:{owner}"
