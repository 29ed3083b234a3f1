"""Admission: as many requests at a time as the process can serve in time; the rest is refused at once, before anything is read.

What is admitted then ends within its deadline, however much is asked for, and a refused caller learns it while it can still go elsewhere.

How many are worked on follows from how late the event loop is: requests that wait for others (a model, `wait=true`) make it late for
nobody, those that are computed do. While the loop is late all the time, the limit shrinks step by step; while it is not, it grows again.
The signal is CoDel's: the least delay of an interval, which a burst or a pause does not raise, a standing queue does (Nichols and Jacobson,
"Controlling Queue Delay", ACM Queue, 2012). The steps are TCP's, down in proportion and up little by little.

Where there are several tenants, each has its share of the places and a line of its own (`turns.py`).
"""

from __future__ import annotations

import asyncio
from time import monotonic

from starlette.types import ASGIApp, Receive, Scope, Send

from agent_memory.api.errors import render
from agent_memory.api.turns import Turns
from agent_memory.errors import Overloaded
from agent_memory.metrics import REQUESTS_IN_FLIGHT, REQUESTS_REFUSED

SHARER = "agent_memory.sharer"
"""The name under which an ASGI scope says whose share of the places its request takes. Without it: that of all who are not known yet."""

ARRIVING = "agent_memory.arriving"
"""The name under which it says that the request's body has not come in whole: it is long, or its sender waits to be told to go on."""

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


class Limit:
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


class Admission:
    """Pure ASGI. At most `most` requests are under way at a time; a refusal is a 503 with `Retry-After`.

    With `fair`, the tenants that `SHARER` names share the places.
    """

    def __init__(self, app: ASGIApp, *, most: int, fair: bool = False) -> None:
        self._app = app
        self._limit = Limit(most)
        self._contested = Limit(most, least=_LEAST_CONTESTED, patience=0.0)
        self._room = min(most, _IN_LINE)
        self._turns = Turns[asyncio.Future[bool]](fair=fair)
        self._turns.contested = self._contested.requests
        REQUESTS_IN_FLIGHT.set_function(lambda: self._turns.working + self._turns.waiting)
        self._arriving: dict[str, int] = {}
        self._due: float | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (path := scope["path"].rstrip("/")) in _EXEMPT or path.endswith(_STREAM):
            await self._app(scope, receive, send)
            return
        sharer: str = scope.get(SHARER, "")
        if ARRIVING in scope:
            await self._arrives(sharer, scope, receive, send)
            return
        now, turns, limit = monotonic(), self._turns, self._limit.requests
        turns.arrives(sharer, now)
        if turns.working + turns.waiting >= max(limit, self._room) and not self._makes_room(sharer, limit):
            await self._refuse(scope, receive, send)
            return
        if self._due is None and turns.working:
            # One alone is no overload, and need not be watched.
            self._wait()
        if turns.may_begin(sharer, limit, now):
            turns.begins(sharer)
        elif not await self._turn(sharer):
            await self._refuse(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            turns.ends(sharer)
            self._next()

    async def _arrives(self, sharer: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request in whose body is still coming, if its tenant has not too many of them."""
        if self._arriving.get(sharer, 0) >= max(self._limit.requests // _ARRIVING_SHARE, 1):
            await self._refuse(scope, receive, send)
            return
        del scope[ARRIVING]
        self._arriving[sharer] = self._arriving.get(sharer, 0) + 1
        try:
            await self(scope, receive, send)
        finally:
            self._arriving[sharer] -= 1
            if not self._arriving[sharer]:
                del self._arriving[sharer]

    def _makes_room(self, sharer: str, limit: int) -> bool:
        """Whether a request may stay although there is no more room: another one had to go, or its tenant has nothing under way yet."""
        place = self._turns.makes_room(sharer)
        if place is not None:
            if not place.done():  # else it has gone by itself
                place.set_result(False)
            return True
        all_of_them = self._turns.working + self._turns.waiting
        return self._turns.is_new(sharer) and all_of_them < 2 * max(limit, self._room)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        REQUESTS_REFUSED.inc()
        under_way = self._turns.working + self._turns.waiting
        message = f"{under_way} requests are under way, more than are answered in time (MAX_CONCURRENT_REQUESTS at most): try again"
        await render(Overloaded(message, retry_after=_RETRY_AFTER_SECONDS))(scope, receive, send)

    async def _turn(self, sharer: str) -> bool:
        """Waits in line; whoever ends its work hands its place over. False when the place in line was needed for another tenant."""
        place = asyncio.get_running_loop().create_future()
        self._turns.waits(sharer, place)
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                if place.result():  # it was given its turn in the same moment
                    self._turns.ends(sharer)
                    self._next()
            else:
                self._turns.leaves(sharer, place)
            raise

    def _next(self) -> None:
        now, limit = monotonic(), self._limit.requests
        while (found := self._turns.next(limit, now)) is not None:
            sharer, place = found
            if not place.done():
                place.set_result(True)
                self._turns.begins(sharer)

    def _wait(self) -> None:
        self._due = monotonic() + _BEAT_SECONDS
        asyncio.get_running_loop().call_later(_BEAT_SECONDS, self._beat)

    def _beat(self) -> None:
        """As long as requests are under way; an idle process is left to sleep."""
        assert self._due is not None
        if self._turns.working:
            now = monotonic()
            late = now - self._due
            # Who waits although there are places has its tenant's share: more places are asked for.
            under_way = self._turns.working + (self._turns.waiting if late <= _LATE_SECONDS else 0)
            self._limit.beat(late, now, under_way)
            self._contested.beat(late, now, under_way)
            self._turns.contested = self._contested.requests
            self._next()
            self._wait()
        else:
            self._limit.rest()
            self._contested.rest()
            self._due = None
