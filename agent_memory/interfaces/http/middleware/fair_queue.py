"""Share places of work fairly between tenants.

A free place goes to the tenant with the fewest running requests; equals take turns. A full queue drops from the longest
line. Fair queueing (Nagle, "On Packet Switches with Infinite Storage", RFC 970) with the longest line pushed out (Suter
et al., "Design Considerations for Supporting TCP with Per-flow Queueing", INFOCOM 1998).
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

Turn = TypeVar("Turn")

# Tenants compete this long after alternating requests.
_RIVALRY_SECONDS = 1.0
# A competing tenant's largest fraction of all places, and the fraction always kept free for another one.
_CONTESTED = 4
_KEPT_FREE = 8


class FairQueue(Generic[Turn]):
    """Running and waiting requests by tenant. Without `fair` all are one tenant."""

    def __init__(self, *, fair: bool) -> None:
        self._fair = fair
        self._working: dict[str, int] = {}
        # Non-empty lines; the first tenant waited longest for a turn.
        self._lines: dict[str, deque[Turn]] = {}
        self.working = 0
        self.waiting = 0
        # Places of a competing tenant; never more than a part of all.
        self.contested = 1 << 30
        self._latest: str | None = None
        self._rivals_until = float("-inf")

    def note_arrival(self, tenant: str, now: float) -> None:
        """Note a request's arrival at a monotonic time."""
        if tenant != self._latest:
            if self._latest is not None:
                self._rivals_until = now + _RIVALRY_SECONDS
            self._latest = tenant

    def under_way(self, tenant: str) -> int:
        """Return the tenant's running and waiting requests."""
        return self._working.get(tenant, 0) + len(self._lines.get(tenant, ()))

    def is_new(self, tenant: str) -> bool:
        """True if a tenant has no requests; always False without `fair`."""
        return self._fair and not self.under_way(tenant)

    def may_start(self, tenant: str, limit: int, now: float) -> bool:
        """True if a new request may start at once, with `limit` places in all."""
        return self.working < limit and tenant not in self._lines and self._working.get(tenant, 0) < self._share(limit, now)

    def start(self, tenant: str) -> None:
        self.working += 1
        self._working[tenant] = self._working.get(tenant, 0) + 1

    def end(self, tenant: str) -> None:
        self.working -= 1
        left = self._working[tenant] - 1
        if left:
            self._working[tenant] = left
        else:
            del self._working[tenant]

    def append(self, tenant: str, turn: Turn) -> None:
        self.waiting += 1
        self._lines.setdefault(tenant, deque()).append(turn)

    def remove(self, tenant: str, turn: Turn) -> None:
        line = self._lines.get(tenant)
        if line is not None and turn in line:
            line.remove(turn)
            self._note_removal(tenant, line)

    def next(self, limit: int, now: float) -> tuple[str, Turn] | None:
        """Take the next turn out of its line, None if nobody may start. Call `start` for it."""
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
        """Remove the last turn of the tenant with most requests, if it has at least two more than this tenant."""
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
