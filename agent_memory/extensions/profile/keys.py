"""The keys of profiles."""

from __future__ import annotations

from agent_memory.foundation.storage.keyspace import digest


class ProfileKeys:
    """The keys of profiles in one bucket: see `PROFILE.keys` in `feature.py`."""

    def __init__(self, root: str) -> None:
        self._root = root

    def profile(self, owner: str) -> str:
        """What a profile is made of; what else there is of it stands behind a letter of its own."""
        return f"{self._root}pf:{owner}"

    def of_user(self, user: str) -> str:
        """A user's profiles, each with its namespace."""
        return f"{self._root}pfu:{user}"

    def schemas(self, tenant: str) -> str:
        """A tenant's schemas, by namespace."""
        return f"{self._root}pfx:{digest('profile schema', tenant)}"
