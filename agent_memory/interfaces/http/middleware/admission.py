"""Admission: as many requests at a time as the process can serve in time; the rest is refused at once, before anything is read.

What is admitted then ends within its deadline, however much is asked for, and a refused caller learns it while it can still go elsewhere.

How many are worked on follows from how late the event loop is: requests that wait for others (a model, `wait=true`) make it late for
nobody, those that are computed do. While the loop is late all the time, the limit shrinks step by step; while it is not, it grows again.
The signal is CoDel's: the least delay of an interval, which a burst or a pause does not raise, a standing queue does (Nichols and Jacobson,
"Controlling Queue Delay", ACM Queue, 2012). The steps are TCP's, down in proportion and up little by little.

Where there are several tenants, each has its share of the places and a line of its own (`fair_queue.py`).
"""

from __future__ import annotations

import asyncio
from time import monotonic

from starlette.types import ASGIApp, Receive, Scope, Send

from agent_memory.foundation.api.errors import render
from agent_memory.foundation.core.errors import Overloaded
from agent_memory.foundation.core.metrics import REQUESTS_IN_FLIGHT, REQUESTS_REFUSED
from agent_memory.interfaces.http.middleware.body_deadline import BODY_ARRIVING
from agent_memory.interfaces.http.middleware.fair_queue import FairQueue

TENANT = "agent_memory.tenant"
"""The name under which an ASGI scope says whose share of the places its request takes. Without it: that of all who are not known yet."""

# Whoever watches the server must see it when it has no room.
_EXEMPT = frozenset({"/v1/health", "/v1/ready", "/metrics"})
# A stream waits nearly always; what it is asked to do comes in requests of their own.
_STREAM = "/sse"
_RETRY_AFTER_SECONDS = 1

_BEAT_SECONDS = 0.01
# A turn of the loop that is late by more; a request takes about ten turns, a refusal about three.
_LATE_SECONDS = 0.01
# How long the loop must be late without a pause before the limit shrinks, and how long until the next step.
_PATIENCE_SECONDS = 0.2
_STEP_SECONDS = 0.05
_DOWN = 0.7
_UP = 1.1
# The limit never falls below this.
_LEAST = 16
# Of one tenant that competes with others so many, at least and at first; they give way after one late beat, for whoever they are late for
# is somebody else.
_LEAST_CONTESTED = 2
# So many callers who each wait for their answer are no overload: those beyond the limit wait for their turn, which costs the loop nothing.
_IN_LINE = 128
# A tenant's requests whose bodies are still coming have this part of the places at most: who sends slowly keeps nobody else from sending.
_ARRIVING_SHARE = 4


class AdaptiveLimit:
    """How many requests may be worked on at a time, at most `most`, by how late the loop was at each beat.

    It shrinks, not below `least`, after the loop was late for `patience` seconds.
    """

    def __init__(self, most: int, *, least: int = _LEAST, patience: float = _PATIENCE_SECONDS) -> None:
        self._most = float(most)
        self._least = float(min(most, least))
        self._patience = patience
        # Not all at once: a flood at the very beginning would be in before the loop is known to be late.
        self._now = min(self._most, 8 * self._least)
        self._late_since: float | None = None
        self._next = 0.0

    @property
    def requests(self) -> int:
        """The limit now."""
        return int(self._now)

    def rest(self) -> None:
        """Nothing is under way: what was late is over. The limit grows again when it is asked for."""
        self._late_since = None

    def beat(self, late: float, now: float, under_way: int) -> None:
        """The loop was late by so many seconds, at a time (s) of a clock that never goes back."""
        if late <= _LATE_SECONDS:
            self._late_since = None
            if now >= self._next and self._now < self._most and under_way >= self._now * 0.9:
                self._now = min(self._most, self._now * _UP + 1)
                self._next = now + _STEP_SECONDS
            return
        if self._late_since is None:
            self._late_since = now
            self._next = max(self._next, now + self._patience)
        elif now >= self._next:
            self._now = max(self._least, min(self._now, under_way) * _DOWN)
            self._next = now + _STEP_SECONDS


class AdmissionMiddleware:
    """Pure ASGI. At most `most` requests are under way at a time; a refusal is a 503 with `Retry-After`.

    With `fair`, the tenants that `TENANT` names share the places.
    """

    def __init__(self, app: ASGIApp, *, most: int, fair: bool = False) -> None:
        self._app = app
        self._limit = AdaptiveLimit(most)
        self._contested = AdaptiveLimit(most, least=_LEAST_CONTESTED, patience=0.0)
        self._room = min(most, _IN_LINE)
        self._queue = FairQueue[asyncio.Future[bool]](fair=fair)
        self._queue.contested = self._contested.requests
        REQUESTS_IN_FLIGHT.set_function(lambda: self._queue.working + self._queue.waiting)
        self._arriving: dict[str, int] = {}
        self._next_beat: float | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (path := scope["path"].rstrip("/")) in _EXEMPT or path.endswith(_STREAM):
            await self._app(scope, receive, send)
            return
        tenant: str = scope.get(TENANT, "")
        if BODY_ARRIVING in scope:
            await self._admit_arriving(tenant, scope, receive, send)
            return
        now, queue, limit = monotonic(), self._queue, self._limit.requests
        queue.note_arrival(tenant, now)
        if queue.working + queue.waiting >= max(limit, self._room) and not self._make_room(tenant, limit):
            await self._refuse(scope, receive, send)
            return
        if self._next_beat is None and queue.working:
            # One alone is no overload, and need not be watched.
            self._schedule_beat()
        if queue.may_start(tenant, limit, now):
            queue.start(tenant)
        elif not await self._wait_for_turn(tenant):
            await self._refuse(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            queue.end(tenant)
            self._start_waiting()

    async def _admit_arriving(self, tenant: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request in whose body is still coming, if its tenant has not too many of them."""
        if self._arriving.get(tenant, 0) >= max(self._limit.requests // _ARRIVING_SHARE, 1):
            await self._refuse(scope, receive, send)
            return
        del scope[BODY_ARRIVING]
        self._arriving[tenant] = self._arriving.get(tenant, 0) + 1
        try:
            await self(scope, receive, send)
        finally:
            self._arriving[tenant] -= 1
            if not self._arriving[tenant]:
                del self._arriving[tenant]

    def _make_room(self, tenant: str, limit: int) -> bool:
        """Whether a request may stay although there is no more room: another one had to go, or its tenant has nothing under way yet."""
        turn = self._queue.push_out(tenant)
        if turn is not None:
            if not turn.done():  # else it has gone by itself
                turn.set_result(False)
            return True
        total = self._queue.working + self._queue.waiting
        return self._queue.is_new(tenant) and total < 2 * max(limit, self._room)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        REQUESTS_REFUSED.inc()
        under_way = self._queue.working + self._queue.waiting
        message = f"{under_way} requests are under way, more than are answered in time (MAX_CONCURRENT_REQUESTS at most): try again"
        await render(Overloaded(message, retry_after=_RETRY_AFTER_SECONDS))(scope, receive, send)

    async def _wait_for_turn(self, tenant: str) -> bool:
        """Waits in line; whoever ends its work hands its place over. False when the place in line was needed for another tenant."""
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(tenant, turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                if turn.result():  # it was given its turn in the same moment
                    self._queue.end(tenant)
                    self._start_waiting()
            else:
                self._queue.remove(tenant, turn)
            raise

    def _start_waiting(self) -> None:
        now, limit = monotonic(), self._limit.requests
        while (first := self._queue.next(limit, now)) is not None:
            tenant, turn = first
            if not turn.done():
                turn.set_result(True)
                self._queue.start(tenant)

    def _schedule_beat(self) -> None:
        self._next_beat = monotonic() + _BEAT_SECONDS
        asyncio.get_running_loop().call_later(_BEAT_SECONDS, self._beat)

    def _beat(self) -> None:
        """As long as requests are under way; an idle process is left to sleep."""
        assert self._next_beat is not None
        if self._queue.working:
            now = monotonic()
            late = now - self._next_beat
            # Who waits although there are places has its tenant's share: more places are asked for.
            under_way = self._queue.working + (self._queue.waiting if late <= _LATE_SECONDS else 0)
            self._limit.beat(late, now, under_way)
            self._contested.beat(late, now, under_way)
            self._queue.contested = self._contested.requests
            self._start_waiting()
            self._schedule_beat()
        else:
            self._limit.rest()
            self._contested.rest()
            self._next_beat = None
