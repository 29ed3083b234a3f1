"""Connections of HTTP that nobody can keep waiting: those of `api/connection.py`, with bounds on how a request may come in.

A head that does not end, a body that drips and a connection that says nothing are cut off, whatever the application does meanwhile. A
request is handed to the application when it has come in whole; until then it takes nobody's place there. Only what says that it is long,
is long, or waits to be told to go on is handed over before, and says so (`ARRIVING`).

What comes in one piece, as most requests do, starts no timer and is looked at no further.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from agent_memory.api.admission import ARRIVING
from agent_memory.api.connection import HttpProtocol
from agent_memory.api.errors import render
from agent_memory.api.middleware import Edge
from agent_memory.errors import AgentMemoryError, RequestLate, TooLarge
from agent_memory.settings import Settings

App = Callable[[Any, Any, Any], Awaitable[None]]

# Longer than clients keep idle connections: one that is closed just when a request is on its way cannot be answered.
KEEP_ALIVE_SECONDS = 75
# For so much of a body that came there is a second more: a sender that keeps this pace is never late.
BYTES_PER_SECOND = 16 * 1024
# Of a head, or of anything else that is no body; a query may name thousands of ids.
MAX_HEAD_BYTES = 1024 * 1024
# Bodies that wait for their end have so much room in all; beyond that, requests are handed over as they are.
_MOST_HELD_BYTES = 16 * 1024 * 1024
# When the time is over there is so much more of it, for what is on its way to us at that moment.
_SECOND_LOOK_SECONDS = 0.05
# In so many turns of the loop all that had come in is read: in asyncio's, what is asked for in one turn comes before what is read in the
# next one, so two are not enough.
_TURNS = 3
_REFUSAL = "agent_memory.refusal"


class HeadTooLarge(TooLarge):
    """What comes before a body, or behind it, is larger than MAX_HEAD_BYTES."""

    status = 431


class Bounds:
    """How requests may come in, and how much of them is held, for all connections of a server."""

    def __init__(self, settings: Settings) -> None:
        self.head_seconds = settings.server.head_timeout_seconds
        self.body_seconds = settings.server.body_timeout_seconds
        self.most_seconds = max(self.body_seconds, settings.server.request_timeout_seconds)
        self.held_bytes = 0
        # Within an edge of its own, so that refusals have their headers and are counted, too.
        self.refusing: App = Edge(_refusing, timeout=settings.server.request_timeout_seconds)


def bounded(settings: Settings) -> type[HttpProtocol]:
    """The connections of one server, for `uvicorn.Config(http=...)`."""

    class Bounded(Connection):
        bounds = Bounds(settings)

    return Bounded


class _Flow(FlowControl):
    """Flow control with a clock (s) that stands still while we do not read: whoever cannot send is not late."""

    def __init__(self, transport: asyncio.Transport, clock: Callable[[], float]) -> None:
        super().__init__(transport)
        self._clock = clock
        self._behind = 0.0  # and while we do not read: less the time at which that began

    def now(self) -> float:
        return -self._behind if self.read_paused else self._clock() - self._behind

    def pause_reading(self) -> None:
        if not self.read_paused:
            self._behind -= self._clock()
        super().pause_reading()

    def resume_reading(self) -> None:
        if self.read_paused:
            self._behind += self._clock()
        super().resume_reading()


class Connection(HttpProtocol):
    """One connection. A head has `Bounds.head_seconds`; a body `Bounds.body_seconds` from then on, and a second more per BYTES_PER_SECOND.

    Time in which we do not read, or have not told a sender to go on who waits for it, does not count, and nobody is late before all that
    had come in was read, however late we are ourselves.
    """

    bounds: Bounds
    _flow: _Flow

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._within = False  # a request: it has begun to come in and not ended
        self._progress = False  # since the last look: a head or a piece of a body
        self._held: tuple[RequestResponseCycle, Any] | None = None
        self._held_bytes = 0
        self._timer: asyncio.Handle | None = None
        self._in_head = True
        self._since = 0.0  # by the clock of `_flow`
        self._due = 0.0  # by the loop's
        self._size = 0
        self._stray = 0
        super().__init__(*arguments, **options)

    # ------------------------------------------------------------------------------------------------------- what uvicorn calls

    def connection_made(self, transport: asyncio.Transport) -> None:
        """See asyncio.Protocol. Whoever connects and says nothing is as one who has been answered and says nothing more."""
        super().connection_made(transport)
        self.flow = self._flow = _Flow(self.transport, self.loop.time)
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._end_of_watch()
        self._let_go()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        super().data_received(data)
        if self._within:
            self._look(len(data))

    def on_message_begin(self) -> None:
        """See httptools."""
        self._within = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """See httptools."""
        self._progress = True
        super().on_headers_complete()
        # Headers that come behind a body are none of the request's (RFC 9110, 6.5.1).
        self.headers = []

    def on_body(self, body: bytes) -> None:
        """See httptools."""
        self._progress = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """See httptools."""
        self._within = False
        if self._timer is not None:
            self._end_of_watch()
        super().on_message_complete()
        if self._held is not None:
            self._hand_over(arriving=False)

    def on_response_complete(self) -> None:
        """See uvicorn. A request that came before the answer to the former one, without its body, has its turn."""
        super().on_response_complete()
        if self._held is not None:
            self._look(0)

    def shutdown(self) -> None:
        """See uvicorn: we stop. What is on its way to us is answered; the answer says that it is the last."""
        self._close_when_idle(_TURNS)

    def _close_when_idle(self, turns: int) -> None:
        """Closes a connection on which nothing is asked, after so many turns of the loop in which that could have come in."""
        if self.transport.is_closing():
            return
        if bool(self.cycle) and not self.cycle.response_complete:
            super().shutdown()
        elif turns and not self._within:
            self.loop.call_soon(self._close_when_idle, turns - 1)
        elif not self._within:
            self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if cycle.more_body:
            self._held = cycle, app
        else:
            super()._start_asgi_task(cycle, app)

    # --------------------------------------------------------------------------------------------------------- what takes longer

    def _look(self, size: int) -> None:
        """After a read of `size` bytes that ended within a request."""
        if self.transport.is_closing():
            return
        in_head = "method" not in self.scope
        if self._timer is None or in_head != self._in_head:
            self._watch(in_head)
        self._size += size
        self._stray = 0 if self._progress else self._stray + size
        self._progress = False
        if self._stray > MAX_HEAD_BYTES:
            self._refuse(HeadTooLarge(f"the head of the request is larger than {MAX_HEAD_BYTES} bytes: send what is long in a body"))
        elif self._held is not None:
            cycle = self._held[0]
            self.bounds.held_bytes += len(cycle.body) - self._held_bytes
            self._held_bytes = len(cycle.body)
            full = self.bounds.held_bytes > _MOST_HELD_BYTES or self._held_bytes > HIGH_WATER_LIMIT
            if full or cycle.waiting_for_100_continue or _declared(cycle) > HIGH_WATER_LIMIT:
                self._hand_over(arriving=True)

    def _hand_over(self, *, arriving: bool) -> None:
        assert self._held is not None
        cycle, app = self._held
        self._let_go()
        if arriving:
            cycle.scope[ARRIVING] = True  # type: ignore[literal-required]
        if cycle.waiting_for_100_continue:
            app = self._watched_from_then(cycle, app)
        super()._start_asgi_task(cycle, app)

    def _watched_from_then(self, cycle: RequestResponseCycle, app: App) -> App:
        """The application, for a request whose sender waits to be told to go on: that happens when the body is asked for."""

        async def watched(scope: Any, receive: Any, send: Any) -> None:
            async def asked() -> Any:
                if cycle.waiting_for_100_continue:
                    self._since = self._flow.now()
                return await receive()

            await app(scope, asked, send)

        return watched

    def _let_go(self) -> None:
        self.bounds.held_bytes -= self._held_bytes
        self._held, self._held_bytes = None, 0

    def _watch(self, in_head: bool) -> None:
        self._end_of_watch()
        self._in_head, self._since = in_head, self._flow.now()
        self._look_again(self._seconds())

    def _look_again(self, seconds: float) -> None:
        self._due = self.loop.time() + seconds
        self._timer = self.loop.call_later(seconds, self._time_over)

    def _end_of_watch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._size = self._stray = 0

    def _seconds(self) -> float:
        return self.bounds.head_seconds if self._in_head else self.bounds.body_seconds

    def _left(self) -> float:
        """The seconds that there still are for what is coming in."""
        allowed = self._seconds()
        if not self._in_head:
            if self.cycle.waiting_for_100_continue:
                self._since = self._flow.now()
            allowed = min(allowed + self._size / BYTES_PER_SECOND, self.bounds.most_seconds)
        return self._since + allowed - self._flow.now()

    def _time_over(self) -> None:
        """The time is over, unless so much has come that there is more of it, or none of it has passed."""
        if self.transport.is_closing():
            return
        left = self._left()
        if left > 0:
            # Not at once while the clock stands still.
            self._look_again(max(left, _SECOND_LOOK_SECONDS) if self.flow.read_paused else left)
        else:
            # As much more as we are late: who stood still with us, on one machine, could not send either.
            late = min(max(self.loop.time() - self._due, 0.0), self._seconds())
            self._timer = self.loop.call_later(_SECOND_LOOK_SECONDS + late, self._turn, _TURNS)

    def _turn(self, turns: int) -> None:
        """Ends what is late, after so many turns of the loop."""
        if self.transport.is_closing():
            return
        if self._left() > 0:
            self._time_over()
        elif turns:
            self._timer = self.loop.call_soon(self._turn, turns - 1)
        else:
            self._late()

    def _late(self) -> None:
        if self._in_head:
            late = f"the head of the request did not come within {self._seconds():g} s: send it at once, or raise HEAD_TIMEOUT_SECONDS"
        else:
            late = (
                f"the body of the request did not come within {self._seconds():g} s and a second more for each "
                f"{BYTES_PER_SECOND // 1024} KiB of it: send it at once, or raise BODY_TIMEOUT_SECONDS"
            )
        self._refuse(RequestLate(late))

    def _refuse(self, error: AgentMemoryError) -> None:
        """Answers a request that has not come in whole, and closes the connection: at once, or when what was asked before is answered."""
        self._end_of_watch()
        self._let_go()
        cycle = self.cycle
        under_way = bool(cycle) and not cycle.response_complete
        if under_way and (self._in_head or cycle.response_started):
            cycle.keep_alive = False
            self.flow.pause_reading()
        elif under_way:
            self._answer_in_its_place(cycle, error)
        else:
            if self._in_head:
                body = bytes(render(error).body)
                head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
                self.transport.write(STATUS_LINE[error.status] + head + body)
            self.transport.close()

    def _answer_in_its_place(self, cycle: RequestResponseCycle, error: AgentMemoryError) -> None:
        """An application that has the request already is told that the caller is gone; whatever it says is dropped."""
        cycle.disconnected = True
        cycle.message_event.set()
        self.cycle = RequestResponseCycle(
            scope=cycle.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=cycle.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=False,
            on_response=self.on_response_complete,
        )
        cycle.scope[_REFUSAL] = error  # type: ignore[literal-required]
        super()._start_asgi_task(self.cycle, self.bounds.refusing)


def _declared(cycle: RequestResponseCycle) -> int:
    """The length of the body that a request declares; 0 when it declares none."""
    for name, value in cycle.scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value[:18])
    return 0


async def _refusing(scope: Any, receive: Any, send: Any) -> None:
    await render(scope[_REFUSAL])(scope, receive, send)
