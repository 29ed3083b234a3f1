"""Provide a transport for httpx2 that speaks HTTP/1.1 without TLS.

Each new query needs an embedding before its search. The embedding request costs 9.0 ms of CPU time with this transport,
9.7 ms with aiohttp's, and 11.4 ms with httpx2's.
"""

from __future__ import annotations

import asyncio
import time
import urllib.request
from collections import deque
from typing import cast
from urllib.parse import urlsplit

import httptools
import httpx2

# Common servers close idle connections after five seconds, so we close them earlier.
_IDLE_SECONDS = 4.0
_MOST_IDLE = 100

_Answer = tuple[int, list[tuple[bytes, bytes]], bytes]


def suits(url: str) -> bool:
    """True if the address uses plain HTTP and the environment does not specify a proxy."""
    proxies = urllib.request.getproxies()
    return urlsplit(url).scheme == "http" and not proxies.get("http") and not proxies.get("all")


class PlainTransport(httpx2.AsyncBaseTransport):
    """A transport that keeps connections alive and sends one request at a time on each connection.

    The transport has no timeouts and does not limit the number of connections. Callers must limit the duration of a
    call; cancelling a call closes its connection. Raises httpx2's ConnectError, ReadError, RemoteProtocolError and
    LocalProtocolError.
    """

    def __init__(self) -> None:
        self._idle: dict[tuple[str, int], deque[_Connection]] = {}
        self._closed = False

    @property
    def waiting(self) -> int:
        """The number of usable idle connections."""
        return sum(connection.usable for connections in self._idle.values() for connection in connections)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        sent = _head(request) + await request.aread()
        address = (request.url.host, request.url.port or 80)
        connection = self._take_idle(address) or await _open_connection(*address)
        try:
            status, headers, body = await connection.ask(sent)
        except BaseException:
            connection.close()
            raise
        if connection.usable and not self._closed:
            self._put_idle(address, connection)
        else:
            connection.close()
        return httpx2.Response(status, headers=headers, content=body, request=request)

    async def aclose(self) -> None:
        """Close idle connections. Busy connections close after their answers."""
        self._closed = True
        for waiting in self._idle.values():
            for connection in waiting:
                connection.close()
        self._idle.clear()

    def _take_idle(self, address: tuple[str, int]) -> _Connection | None:
        """Return the most recently used idle connection, or None, so that the others can expire."""
        waiting = self._idle.get(address)
        oldest = time.monotonic() - _IDLE_SECONDS
        while waiting and (not waiting[0].usable or waiting[0].since < oldest):
            waiting.popleft().close()
        while waiting:
            connection = waiting.pop()
            if connection.usable:
                return connection
        return None

    def _put_idle(self, address: tuple[str, int], connection: _Connection) -> None:
        waiting = self._idle.setdefault(address, deque())
        connection.since = time.monotonic()
        waiting.append(connection)
        if len(waiting) > _MOST_IDLE:
            waiting.popleft().close()


class _Connection(asyncio.Protocol):
    """One connection, which closes when it receives unexpected data."""

    def __init__(self) -> None:
        self.since = 0.0
        self.usable = True
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._answer: asyncio.Future[_Answer] | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._until_end = False

    async def ask(self, request: bytes) -> _Answer:
        assert self._transport is not None
        self._parser = httptools.HttpResponseParser(self)
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        self.usable = False
        if self._transport is not None:
            self._transport.abort()

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports are not subclasses

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done() or self._parser is None:
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(httpx2.RemoteProtocolError(f"the answer is not HTTP ({type(error).__name__})"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.usable = False
        if self._answer is None or self._answer.done():
            return
        if exc is None and self._until_end:
            self._complete()
        else:
            self._fail(httpx2.RemoteProtocolError("the connection ended before the answer") if exc is None else httpx2.ReadError(str(exc)))

    # Called by the parser.

    def on_message_begin(self) -> None:
        self._headers, self._body, self._until_end = [], [], False
        if self._answer is None or self._answer.done():
            self.usable = False  # a second answer to one request

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._until_end = not any(name.lower() in (b"content-length", b"transfer-encoding") for name, _ in self._headers)

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        assert self._parser is not None
        if self._parser.get_status_code() >= 200:  # a lower status only announces the answer
            self.usable = self.usable and self._parser.should_keep_alive()
            self._complete()

    def _complete(self) -> None:
        if self._answer is not None and self._parser is not None and not self._answer.done():
            self._answer.set_result((self._parser.get_status_code(), self._headers, b"".join(self._body)))

    def _fail(self, error: Exception) -> None:
        self.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)


async def _open_connection(host: str, port: int) -> _Connection:
    try:
        _, connection = await asyncio.get_running_loop().create_connection(_Connection, host, port)
    except OSError as error:
        raise httpx2.ConnectError(str(error)) from error
    return connection


def _head(request: httpx2.Request) -> bytes:
    lines = [b"%s %s HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)]
    for name, value in request.headers.raw:
        if b"\r" in value or b"\n" in value:
            raise httpx2.LocalProtocolError(f"the header {name.decode('ascii', 'replace')} contains a line break")
        lines.append(b"%s: %s" % (name, value))
    return b"\r\n".join([*lines, b"", b""])
