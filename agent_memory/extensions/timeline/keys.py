"""The keys of timelines."""

from __future__ import annotations


class TimelineKeys:
    """The keys of timelines in one bucket: see `TIMELINE.keys` in `feature.py`."""

    def __init__(self, root: str) -> None:
        self._root = root

    def timeline(self, owner: str) -> str:
        """The events of a timeline; its sets by day, and its summaries, stand behind a letter of their own."""
        return f"{self._root}tl:{owner}"

    @property
    def waiting(self) -> str:
        """The timelines with periods that wait for their summary."""
        return f"{self._root}tlp"

    def of_user(self, user: str) -> str:
        """A user's timelines, each with its namespace."""
        return f"{self._root}tlu:{user}"
