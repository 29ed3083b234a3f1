"""Admit as many requests as the process can serve in time; refuse others before reading them.

The limit follows the event loop's delay: it shrinks while the loop is always late and grows otherwise. Signal: CoDel's
least delay of an interval (Nichols and Jacobson, "Controlling Queue Delay", ACM Queue, 2012); steps as in TCP. Several
tenants share the places (`fair_queue.py`).
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
"""Key in an ASGI scope: the tenant whose share a request uses. Without it: the share of unknown callers."""

# Monitoring works without free places, too.
_EXEMPT = frozenset({"/v1/health", "/v1/ready", "/metrics"})
# A stream is mostly idle; its calls are requests of their own.
_STREAM = "/sse"
_RETRY_AFTER_SECONDS = 1

_BEAT_SECONDS = 0.01
# A request takes about ten turns of the loop, a refusal about three.
_LATE_SECONDS = 0.01
# Delay without a break until the limit shrinks, and until the next step.
_PATIENCE_SECONDS = 0.2
_STEP_SECONDS = 0.05
_DOWN = 0.7
_UP = 1.1
_LEAST = 16
# The least and first limit of a competing tenant; it shrinks after one late beat, since others suffer.
_LEAST_CONTESTED = 2
# This many waiting callers are no overload: waiting costs the loop nothing.
_IN_LINE = 128
# Share of requests with incoming bodies: slow senders block nobody else.
_ARRIVING_SHARE = 4


class AdaptiveLimit:
    """Limit of requests, up to `most`: shrinks, not below `least`, after `patience` seconds of delay."""

    def __init__(self, most: int, *, least: int = _LEAST, patience: float = _PATIENCE_SECONDS) -> None:
        self._most = float(most)
        self._least = float(min(most, least))
        self._patience = patience
        # Start low: a first flood would be in before the loop is late.
        self._now = min(self._most, 8 * self._least)
        self._late_since: float | None = None
        self._next = 0.0

    @property
    def requests(self) -> int:
        return int(self._now)

    def rest(self) -> None:
        """Reset the delay when no request is running."""
        self._late_since = None

    def beat(self, late: float, now: float, under_way: int) -> None:
        """Note a delay of `late` seconds at a monotonic time."""
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
    """Run at most `most` requests at a time, refuse others with 503. `fair`: tenants share the places."""

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
            # One request alone is no overload.
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
        """Push out another tenant's request, or admit a tenant without running requests."""
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
        """Return False if the place in line was needed for another tenant."""
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
        """Runs while requests run; an idle process sleeps."""
        assert self._next_beat is not None
        if self._queue.working:
            now = monotonic()
            late = now - self._next_beat
            # A request that waits beside free places has its tenant's share: ask for more places.
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
