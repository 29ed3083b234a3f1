"""The user, namespace and agent that a conversation's tools use."""

from __future__ import annotations

from dataclasses import dataclass

from agent_memory_client.errors import MemoryNotFoundError, MemoryValidationError
from agent_memory_client.models import MemoryRecord


@dataclass(frozen=True, slots=True)
class ToolScope:
    """The scope of the tools in a conversation.

    The model cannot override these values, but can choose values for fields that are None.
    """

    session_id: str
    namespace: str | None = None
    user_id: str | None = None
    agent_id: str | None = None

    def user(self, requested: str | None) -> str | None:
        """Return the user id for a call.

        Raises MemoryValidationError if the model requests a different user.
        """
        return _own_or_requested("user_id", self.user_id, requested)

    def space(self, requested: str | None) -> str | None:
        """Return the namespace for a call.

        Raises MemoryValidationError if the model requests a different namespace.
        """
        return _own_or_requested("namespace", self.namespace, requested)

    @property
    def binds(self) -> bool:
        """True if the scope restricts the model to a user or namespace."""
        return self.user_id is not None or self.namespace is not None

    def check(self, memory: MemoryRecord) -> None:
        """Raise MemoryNotFoundError if the memory belongs to another user or namespace."""
        others = (
            self.user_id is not None and memory.user_id not in (None, self.user_id),
            self.namespace is not None and memory.namespace not in (None, self.namespace),
        )
        if any(others):
            raise MemoryNotFoundError(f"Memory {memory.id} not found")


def _own_or_requested(name: str, own: str | None, requested: str | None) -> str | None:
    if own is None:
        return requested or None
    if requested and requested != own:
        raise MemoryValidationError(f"{name}: {requested!r} is not that of this conversation: leave it out")
    return own
