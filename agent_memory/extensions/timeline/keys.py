"""Create the Redis keys for timelines."""

from __future__ import annotations


class TimelineKeys:
    """Creates the Redis keys for timelines in one bucket. `feature.py` describes each key."""

    def __init__(self, root: str) -> None:
        self._root = root

    def timeline(self, owner: str) -> str:
        """Return the key of a timeline's events. The timeline's other keys append ":" and a letter to it."""
        return f"{self._root}tl:{owner}"

    @property
    def waiting(self) -> str:
        """The key of the sorted set of timelines with periods that are waiting for a summary."""
        return f"{self._root}tlp"

    def of_user(self, user: str) -> str:
        return f"{self._root}tlu:{user}"
