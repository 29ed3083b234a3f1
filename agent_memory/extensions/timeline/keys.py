"""Keys of timelines."""

from __future__ import annotations


class TimelineKeys:
    """Keys of timelines in one bucket: see `feature.py`."""

    def __init__(self, root: str) -> None:
        self._root = root

    def timeline(self, owner: str) -> str:
        """Return the key of a timeline's events; its other keys add a letter."""
        return f"{self._root}tl:{owner}"

    @property
    def waiting(self) -> str:
        """The key of timelines with periods that wait for a summary."""
        return f"{self._root}tlp"

    def of_user(self, user: str) -> str:
        return f"{self._root}tlu:{user}"
