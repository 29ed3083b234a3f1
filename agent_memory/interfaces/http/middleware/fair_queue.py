"""Whose turn it is: places of work and a line for them, shared fairly between tenants.

Each tenant has a line of its own. A free place goes to the tenant that works on least; among equals they take turns. When there is no more
room to wait, it is made where the most wait, so that a tenant fills nobody's line but its own. This is fair queueing (Nagle, "On Packet
Switches with Infinite Storage", RFC 970) with the longest line pushed out (Suter et al., "Design Considerations for Supporting TCP with
Per-flow Queueing", INFOCOM 1998).
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

Turn = TypeVar("Turn")

# So long after requests of different tenants they are taken to compete.
_RIVALRY_SECONDS = 1.0
# What of all places one tenant may have at most while it competes with others, and what of them is kept free for another one in any case.
_CONTESTED = 4
_KEPT_FREE = 8


class FairQueue(Generic[Turn]):
    """Who works and who waits, by tenant. Without `fair` all are one tenant."""

    def __init__(self, *, fair: bool) -> None:
        self._fair = fair
        self._working: dict[str, int] = {}
        # Only lines in which somebody waits; the first tenant is the one that had no turn for longest.
        self._lines: dict[str, deque[Turn]] = {}
        self.working = 0
        self.waiting = 0
        # How many places one tenant may have while it competes with others; never more than a part of all.
        self.contested = 1 << 30
        self._latest: str | None = None
        self._rivals_until = float("-inf")

    def note_arrival(self, tenant: str, now: float) -> None:
        """A request of a tenant came, at a time (s) of a clock that never goes back."""
        if tenant != self._latest:
            if self._latest is not None:
                self._rivals_until = now + _RIVALRY_SECONDS
            self._latest = tenant

    def under_way(self, tenant: str) -> int:
        """How many requests of a tenant are worked on or wait."""
        return self._working.get(tenant, 0) + len(self._lines.get(tenant, ()))

    def is_new(self, tenant: str) -> bool:
        """Whether nothing of a tenant is under way; always False where all are one."""
        return self._fair and not self.under_way(tenant)

    def may_start(self, tenant: str, limit: int, now: float) -> bool:
        """Whether a request that just came may be worked on at once, when `limit` may be in all."""
        return self.working < limit and tenant not in self._lines and self._working.get(tenant, 0) < self._share(limit, now)

    def start(self, tenant: str) -> None:
        """A request is worked on from now on."""
        self.working += 1
        self._working[tenant] = self._working.get(tenant, 0) + 1

    def end(self, tenant: str) -> None:
        """A request that was worked on is over."""
        self.working -= 1
        left = self._working[tenant] - 1
        if left:
            self._working[tenant] = left
        else:
            del self._working[tenant]

    def append(self, tenant: str, turn: Turn) -> None:
        """A request waits for its turn at the end of its tenant's line."""
        self.waiting += 1
        self._lines.setdefault(tenant, deque()).append(turn)

    def remove(self, tenant: str, turn: Turn) -> None:
        """A request that may wait does so no longer."""
        line = self._lines.get(tenant)
        if line is not None and turn in line:
            line.remove(turn)
            self._note_removal(tenant, line)

    def next(self, limit: int, now: float) -> tuple[str, Turn] | None:
        """Who has its turn now, out of its line: None when nobody waits who may have one. Whoever gets the place is to `start`."""
        if not self._lines or self.working >= limit:
            return None
        share = self._share(limit, now)
        tenant = min(self._lines, key=lambda each: self._working.get(each, 0))
        if self._working.get(tenant, 0) >= share:
            return None
        line = self._lines.pop(tenant)
        turn = line.popleft()
        self.waiting -= 1
        if line:
            self._lines[tenant] = line  # behind all others
        return tenant, turn

    def push_out(self, tenant: str) -> Turn | None:
        """The last one in the line of whoever has most under way, out of that line, where that has at least two more than this tenant."""
        most = max(self._lines, key=self.under_way, default=None)
        if most is None or self.under_way(most) < self.under_way(tenant) + 2:
            return None
        line = self._lines[most]
        turn = line.pop()
        self._note_removal(most, line)
        return turn

    def _share(self, limit: int, now: float) -> int:
        if not self._fair:
            return limit
        if now >= self._rivals_until:
            return max(limit - limit // _KEPT_FREE, 1)
        return max(min(limit // _CONTESTED, self.contested), 1)

    def _note_removal(self, tenant: str, line: deque[Turn]) -> None:
        self.waiting -= 1
        if not line:
            del self._lines[tenant]
