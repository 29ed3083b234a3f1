"""Create the Redis keys for profiles."""

from __future__ import annotations

from agent_memory.foundation.storage.keyspace import digest


class ProfileKeys:
    """Creates the Redis keys for profiles in one bucket. `feature.py` describes each key."""

    def __init__(self, root: str) -> None:
        self._root = root

    def profile(self, owner: str) -> str:
        """Return the key of a profile. The profile's other keys append ":" and a letter to it."""
        return f"{self._root}pf:{owner}"

    def of_user(self, user: str) -> str:
        return f"{self._root}pfu:{user}"

    def schemas(self, tenant: str) -> str:
        return f"{self._root}pfx:{digest('profile schema', tenant)}"
