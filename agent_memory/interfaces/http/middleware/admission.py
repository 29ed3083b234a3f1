"""Admit only as many requests as the process can serve in time, and reject others.

The limit is based on the event loop's minimum delay in an interval, as in CoDel (Nichols and
Jacobson, ACM Queue, 2012). It changes in steps, as in TCP. Tenants share the slots by fair queueing
(Nagle, RFC 970), which drops requests from the longest queue (Suter et al., INFOCOM 1998).
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from contextlib import ExitStack
from time import monotonic
from typing import Generic, TypeVar

from starlette.types import ASGIApp, Receive, Scope, Send

from agent_memory.foundation.api.errors import render
from agent_memory.foundation.api.responses import LEAVE
from agent_memory.foundation.core.errors import Overloaded
from agent_memory.foundation.core.metrics import REQUESTS_IN_FLIGHT, REQUESTS_REFUSED
from agent_memory.interfaces.http.middleware.body_deadline import BODY_ARRIVING

TENANT = "agent_memory.tenant"
"""Key in an ASGI scope: the tenant whose share of slots a request uses.

Without this key, a request uses the share for all unknown callers.
"""

# Exempt monitoring, which must work under overload, and streams, which are mostly idle. MCP calls are separate
# requests.
_EXEMPT = re.compile(r"/v1/health|/v1/ready|/metrics|/console/live|(/[^/]+)?/sse")
_BEAT_SECONDS = 0.01
# A request takes about ten turns of the event loop, a refusal about three.
_LATE_SECONDS = 0.01
_STEP_SECONDS = 0.05
# After requests from different tenants alternate, the tenants count as competing for this long.
_RIVALRY_SECONDS = 1.0

Turn = TypeVar("Turn")


class AdaptiveLimit:
    """Limits the number of running requests to `most`, or less under load.

    The limit decreases after the event loop has been late for `patience` seconds, but never below
    `least`.
    """

    def __init__(self, most: int, *, least: int = 16, patience: float = 0.2) -> None:
        self._most = float(most)
        self._least = float(min(most, least))
        self._patience = patience
        # Start low: a first burst would be admitted before the loop is late.
        self._now = min(self._most, 8 * self._least)
        self._is_late = False
        self._next = 0.0

    @property
    def requests(self) -> int:
        return int(self._now)

    def beat(self, late: float, now: float, under_way: int) -> None:
        was_late, self._is_late = self._is_late, late > _LATE_SECONDS
        if self._is_late and not was_late:
            self._next = max(self._next, now + self._patience)
        elif now >= self._next and (self._is_late or under_way >= self._now * 0.9):
            changed = min(self._now, under_way) * 0.7 if self._is_late else self._now * 1.1 + 1
            self._now = min(max(changed, self._least), self._most)
            self._next = now + _STEP_SECONDS


class FairQueue(Generic[Turn]):
    """Tracks each tenant's running and pending requests.

    The next slot goes to the tenant with the fewest running requests. If `fair` is false, all
    requests are treated as one tenant's.
    """

    def __init__(self, *, fair: bool) -> None:
        self._fair = fair
        self._running = Counter[str]()
        # Waiting requests by tenant, without empty queues. The first tenant has waited longest for a turn.
        self._lines: dict[str, deque[Turn]] = {}
        self.contested = 1 << 30  # the maximum number of places that a competing tenant may use
        self._latest: str | None = None
        self._rivals_until = float("-inf")

    @property
    def working(self) -> int:
        return self._running.total()

    @property
    def waiting(self) -> int:
        return sum(map(len, self._lines.values()))

    def under_way(self, tenant: str) -> int:
        return self._running[tenant] + len(self._lines.get(tenant, ()))

    def note_arrival(self, tenant: str, now: float) -> None:
        if self._latest not in (None, tenant):
            self._rivals_until = now + _RIVALRY_SECONDS
        self._latest = tenant

    def end(self, tenant: str) -> None:
        self._running[tenant] -= 1
        if not self._running[tenant]:
            del self._running[tenant]

    def append(self, tenant: str, turn: Turn) -> None:
        self._lines.setdefault(tenant, deque()).append(turn)

    def remove(self, tenant: str, turn: Turn) -> None:
        if turn in (line := self._lines.get(tenant, deque())):
            line.remove(turn)
            self._delete_if_empty(tenant)

    def next(self, limit: int, now: float) -> tuple[str, Turn] | None:
        """Start the next request if one of `limit` slots is free.

        Returns its tenant and turn, or None.
        """
        share = limit
        if self._fair:
            # Keep one eighth of all places free for other tenants; a competing tenant gets a quarter at most.
            share = max(limit - limit // 8 if now >= self._rivals_until else min(limit // 4, self.contested), 1)
        tenant = min(self._lines, key=self._running.__getitem__, default=None)
        if tenant is None or self.working >= limit or self._running[tenant] >= share:
            return None
        turn = self._lines[tenant].popleft()
        self._lines[tenant] = self._lines.pop(tenant)  # move the tenant behind all others
        self._delete_if_empty(tenant)
        self._running[tenant] += 1
        return tenant, turn

    def push_out(self, tenant: str) -> Turn | None:
        """Remove and return the last pending turn of the tenant with the most requests.

        Returns None unless that tenant has at least two more requests than `tenant`.
        """
        most = max(self._lines, key=self.under_way, default=None)
        if most is None or self.under_way(most) < self.under_way(tenant) + 2:
            return None
        turn = self._lines[most].pop()
        self._delete_if_empty(most)
        return turn

    def _delete_if_empty(self, tenant: str) -> None:
        if not self._lines[tenant]:
            del self._lines[tenant]


class AdmissionMiddleware:
    """Middleware that runs up to `most` requests at a time, and rejects others with 503.

    If `fair` is true, tenants share the slots. Up to `most_calls` requests may wait if their paths
    begin with one of `calls`.
    """

    def __init__(self, app: ASGIApp, *, most: int, fair: bool = False, calls: tuple[str, ...] = (), most_calls: int = 0) -> None:
        self._app = app
        # That many waiting callers are not an overload, because waiting is free.
        self._requests = _Admission(most, fair=fair, room=min(most, 128))
        self._calls = _Admission(most, fair=fair, room=most_calls)
        self._prefixes = calls
        REQUESTS_IN_FLIGHT.set_function(lambda: self._requests.under_way + self._calls.under_way)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _EXEMPT.fullmatch(scope["path"].rstrip("/")):
            await self._app(scope, receive, send)
            return
        admission = self._calls if scope["path"].startswith(self._prefixes) else self._requests
        tenant: str = scope.get(TENANT, "")
        with ExitStack() as place:
            if not await admission.enter(tenant, place, is_arriving=BODY_ARRIVING in scope):
                REQUESTS_REFUSED.inc()
                under_way = f"{admission.under_way} requests are running, too many to answer in time"
                await render(Overloaded(f"{under_way} (MAX_CONCURRENT_REQUESTS at most): try again"))(scope, receive, send)
                return
            scope[LEAVE] = place.close
            await self._app(scope, receive, send)


class _Admission:
    def __init__(self, most: int, *, fair: bool, room: int) -> None:
        self._limit = AdaptiveLimit(most)
        # The limit for a competing tenant. It shrinks after a single late beat, because other tenants suffer.
        self._contested = AdaptiveLimit(most, least=2, patience=0.0)
        self._room = room
        self._queue = FairQueue[asyncio.Future[bool]](fair=fair)
        self._queue.contested = self._contested.requests
        self._arriving: list[str] = []  # one entry per incoming body: its tenant
        self._is_beating = False

    @property
    def under_way(self) -> int:
        return self._queue.working + self._queue.waiting

    async def enter(self, tenant: str, place: ExitStack, *, is_arriving: bool) -> bool:
        """Wait for a slot. Return False if there are too many requests.

        Closing `place` frees the slot.
        """
        if is_arriving:
            self._arriving.append(tenant)
            place.callback(self._arriving.remove, tenant)
            # Bodies that still arrive get a quarter of the places, so that slow senders do not block others.
            if self._arriving.count(tenant) > max(self._limit.requests // 4, 1):
                return False
        if not await self._enter(tenant):
            return False
        place.callback(self._leave, tenant)
        return True

    async def _enter(self, tenant: str) -> bool:
        now, queue = monotonic(), self._queue
        queue.note_arrival(tenant, now)
        room, under_way = max(self._limit.requests, self._room), self.under_way
        if under_way >= room:
            if (last := queue.push_out(tenant)) is None and (queue.under_way(tenant) or under_way >= 2 * room):
                return False
            if last is not None and not last.done():  # else that caller has already left
                last.set_result(False)
        if not self._is_beating and queue.working:
            self._beat(now)  # a single request is not an overload
        turn = asyncio.get_running_loop().create_future()
        queue.append(tenant, turn)
        self._start_waiting()
        try:
            return await turn
        except asyncio.CancelledError:
            queue.remove(tenant, turn)
            if not turn.cancelled() and turn.result():  # it got its turn at the same moment
                self._leave(tenant)
            raise

    def _leave(self, tenant: str) -> None:
        self._queue.end(tenant)
        self._start_waiting()

    def _start_waiting(self) -> None:
        while (first := self._queue.next(self._limit.requests, monotonic())) is not None:
            tenant, turn = first
            if turn.done():
                self._queue.end(tenant)
            else:
                turn.set_result(True)

    def _beat(self, due: float) -> None:
        now, working = monotonic(), self._queue.working
        late = now - due if working else 0.0
        # If requests wait although places are free, their tenants have used their shares: count these requests, too, to
        # raise the limit.
        under_way = working + (self._queue.waiting if late <= _LATE_SECONDS else 0)
        for limit in (self._limit, self._contested):
            limit.beat(late, now, under_way)
        self._queue.contested = self._contested.requests
        self._start_waiting()
        self._is_beating = working > 0
        if working:
            asyncio.get_running_loop().call_later(_BEAT_SECONDS, self._beat, now + _BEAT_SECONDS)
