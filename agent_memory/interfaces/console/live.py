"""Send counters to visible pages, with one stream of server-sent events per tab."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from time import monotonic
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agent_memory.foundation.api.dependencies import is_stopping
from agent_memory.foundation.api.responses import DEADLINE
from agent_memory.foundation.core.errors import AgentMemoryError, Overloaded
from agent_memory.interfaces.console.frame import Page
from agent_memory.interfaces.console.rest import RestError

MOST_STREAMS = 64
_MOST_OF_A_CALLER = 16
_SECONDS = 2.0
# Reading totals counts toward the caller's requests: read them less often, and rarely while no work is being done.
_BUSY_SECONDS, _IDLE_SECONDS = 10.0, 60.0
# Proxies close streams on which nothing is sent.
_SILENCE_SECONDS = 15.0
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would collect events
]


class LiveStreams:
    """All open streams in a process. They share a single readiness query."""

    def __init__(self) -> None:
        self._open = Counter[str]()
        self._readiness: tuple[float, Any] = (-_SECONDS, None)
        self.over = asyncio.Event()

    @property
    def number(self) -> int:
        return self._open.total()

    def enter(self, caller: str) -> None:
        """Register a stream.

        Raises Overloaded if too many streams are open or the process is stopping.
        """
        if self.over.is_set() or self.number >= MOST_STREAMS or self._open[caller] >= _MOST_OF_A_CALLER:
            raise Overloaded(f"too many pages show live counters (at most {_MOST_OF_A_CALLER} of yours): close some, or wait")
        self._open[caller] += 1

    def leave(self, caller: str) -> None:
        self._open[caller] -= 1
        self._open += Counter()  # drops callers without streams

    def end(self) -> None:
        """End all streams, and reject new ones."""
        self.over.set()

    async def readiness(self, page: Page) -> Any:
        read_at, readiness = self._readiness
        if monotonic() - read_at >= _SECONDS:
            # Until the new readiness is available, other streams show the old one.
            self._readiness = (monotonic(), readiness)
            readiness = await page.readiness()
            self._readiness = (monotonic(), readiness)
        return readiness


def work_counters(readiness: Any) -> dict[str, str]:
    """Return the displayed counts of pending work, keyed by counter name."""
    work: dict[str, Any] = readiness["checks"].get("work", {})
    counters = {name: _number(sum(kind[name] for kind in work.values())) for name in ("pending", "dead")}
    longest = max((kind["pending"] for kind in work.values()), default=0) or 1
    for name, kind in work.items():
        oldest = f"{kind['oldest_seconds']:,.0f} s" if kind["oldest_seconds"] else "–"
        counters[f"{name}.pending"] = _number(kind["pending"])
        counters[f"{name}.oldest"] = oldest
        counters[f"{name}.dead"] = _number(kind["dead"]) if kind["dead"] else "–"
        counters[f"{name}.share"] = f"{100 * kind['pending'] / longest:.1f}"
    return counters


def _number(number: int) -> str:
    return f"{number:,}"


async def show_live(page: Page) -> Response:
    """Stream counters until the tab is hidden, the login expires, or the process stops."""
    if page.principal is None:
        return Response(status_code=204)  # with this status, a browser does not ask again
    if is_stopping(page.request):
        raise Overloaded("the process is stopping")
    streams: LiveStreams = page.request.app.state.live
    caller = f"{page.principal.tenant} {page.principal.subject}"
    streams.enter(caller)
    return _Stream(page, streams, caller)


class _Stream(Response):
    def __init__(self, page: Page, streams: LiveStreams, caller: str) -> None:
        super().__init__()
        self._page = page
        self._streams = streams
        self._caller = caller
        self._totals: dict[str, str] = {}
        self._totals_at = float("-inf")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if DEADLINE in scope:
            scope[DEADLINE].reschedule(None)
        ends = {asyncio.create_task(_wait_for_disconnect(receive)), asyncio.create_task(self._streams.over.wait())}
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            with contextlib.suppress(AgentMemoryError):
                await self._send_events(send, ends)
            await send({"type": "http.response.body", "body": b""})
        finally:
            for task in ends:
                task.cancel()
            self._streams.leave(self._caller)

    async def _send_events(self, send: Send, ends: set[asyncio.Task[Any]]) -> None:
        sent: dict[str, str] = {}
        sent_at = monotonic()
        while True:
            counters = await self._counters(sent)
            if counters is None:
                return
            if counters != sent:
                event = f"retry: 5000\ndata: {json.dumps(counters)}\n\n"
            else:
                event = ":\n\n" if monotonic() - sent_at >= _SILENCE_SECONDS else ""
            if event:
                await send({"type": "http.response.body", "body": event.encode(), "more_body": True})
                sent, sent_at = counters, monotonic()
            if (await asyncio.wait(ends, timeout=_SECONDS, return_when=asyncio.FIRST_COMPLETED))[0]:
                return

    async def _counters(self, sent: dict[str, str]) -> dict[str, str] | None:
        """Return the counters, or None if the login has expired. Raises AgentMemoryError."""
        readiness = await self._streams.readiness(self._page)
        counters = work_counters(readiness)
        is_busy = any(sent.get(name) != text for name, text in counters.items())
        if monotonic() - self._totals_at >= (_BUSY_SECONDS if is_busy else _IDLE_SECONDS):
            if not await self._page.identify():
                return None
            if "totals" in self._page.query:
                await self._read_totals()
            self._totals_at = monotonic()
        return counters | self._totals | {"state": "good" if readiness["ready"] and counters["dead"] == "0" else "bad"}

    async def _read_totals(self) -> None:
        rest = self._page.rest
        with contextlib.suppress(RestError):  # such as 429: the page keeps the last totals
            memories = await rest("POST", "/v1/long-term-memory/search", {"limit": 1})
            sessions = await rest("GET", "/v1/working-memory/", limit=1)
            self._totals = {"memories": _number(memories["total"]), "sessions": _number(sessions["total"])}


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
