"""A TCP proxy that can refuse, swallow, delay, cut or half-close connections, or drop replies."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

_CHUNK = 65536
Match = Callable[[bytes], bool]


def anything(_: bytes) -> bool:
    return True


@dataclass
class _Loss:
    """Drops the replies to the next `times` matching requests."""

    match: Match
    times: int


@dataclass(eq=False)
class _Link:
    """A proxied connection. If `losing`, drop the reply to the last request."""

    down: asyncio.StreamWriter
    up: asyncio.StreamWriter
    losing: bool = False
    deaf: bool = False
    ways: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])

    def abort(self) -> None:
        """Reset both sides, discarding undelivered data."""
        for way in self.ways:
            if way is not asyncio.current_task():
                way.cancel()
        for writer in (self.down, self.up):
            if writer.transport is not None:
                writer.transport.abort()


@dataclass
class Proxy:
    """Forwards the local `port` to the local port `target`. Set its fields to inject faults."""

    target: int
    port: int = 0
    delay: float = 0.0
    """Seconds of delay for each chunk, in both directions. A chunk whose sender disconnects meanwhile is never delivered."""
    refuse: bool = False
    """Cut new connections at once."""
    swallow: bool = False
    """Keep connections open, but forward nothing."""
    answer: bytes | None = None
    """Reply to every request in the target's place, without forwarding it."""
    counts: Counter[str] = field(default_factory=Counter)
    _losses: list[_Loss] = field(default_factory=list[_Loss])
    _links: set[_Link] = field(default_factory=set[_Link])
    _serving: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _server: asyncio.Server | None = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Proxy]:
        """Listen during the `with` block, and cut all connections on exit."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            self._server.close()
            self.heal()
            self.cut()
            await asyncio.gather(*self._serving, return_exceptions=True)

    def heal(self) -> None:
        """Clear all faults, but keep connections open."""
        self.delay, self.refuse, self.swallow, self.answer = 0.0, False, False, None
        self._losses.clear()

    def cut(self) -> int:
        """Reset all connections and return how many there were."""
        links = list(self._links)
        for link in links:
            link.abort()
        return len(links)

    def half_close(self, rng: random.Random) -> None:
        """Half-close each connection on a random side."""
        for link in list(self._links):
            writer = link.down if rng.random() < 0.5 else link.up
            with contextlib.suppress(OSError, RuntimeError):
                if writer.can_write_eof():
                    writer.write_eof()

    def lose_replies(self, times: int = 1, match: Match = anything) -> None:
        """Drop the replies to the next `times` matching requests and reset their connections."""
        self._losses.append(_Loss(match, times))

    @property
    def open(self) -> int:
        """Return the number of open connections."""
        return len(self._links)

    @property
    def to_lose(self) -> int:
        """Return the number of replies still to be dropped."""
        return sum(loss.times for loss in self._losses)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        self.counts["connections"] += 1
        if self.refuse:
            writer.transport.abort()
            return
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        link = _Link(writer, up_writer)
        self._links.add(link)
        link.ways = [
            asyncio.create_task(self._carry(link, reader, up_writer, request=True)),
            asyncio.create_task(self._carry(link, up_reader, writer, request=False)),
        ]
        try:
            await asyncio.wait(link.ways)
        finally:
            self._links.discard(link)
            link.abort()

    async def _carry(self, link: _Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, request: bool) -> None:
        try:
            while chunk := await reader.read(_CHUNK):
                if self.delay:
                    await asyncio.sleep(self.delay)  # the fault itself
                    if link.down.is_closing() or (request and reader.exception() is not None) or (request and reader.at_eof()):
                        self.counts["undelivered"] += 1
                        break
                if self.swallow:
                    link.deaf = True
                if link.deaf:
                    self.counts["swallowed"] += 1
                    continue
                if request and self.answer is not None:
                    link.down.write(self.answer)
                    continue
                if request:
                    self._mark(link, chunk)
                elif link.losing:
                    self.counts["lost replies"] += 1
                    link.abort()
                    return
                writer.write(chunk)
                await writer.drain()
            if writer.can_write_eof() and not writer.is_closing():
                writer.write_eof()
        except (OSError, RuntimeError):
            link.abort()

    def _mark(self, link: _Link, chunk: bytes) -> None:
        for loss in self._losses:
            if loss.times > 0 and loss.match(chunk):
                loss.times -= 1
                link.losing = True
                if loss.times == 0:
                    self._losses.remove(loss)
                return
