"""A minimal HTTP client with so little overhead that only the server is measured.

Connections are persistent. There is no pool, and redirects are not followed.
"""

from __future__ import annotations

import asyncio
from typing import cast
from urllib.parse import urlsplit

import httptools


class Failed(Exception):
    """Raised for non-2xx statuses. Ends the benchmark, because its figures would be meaningless."""


class Connection(asyncio.Protocol):
    """A persistent connection to a server."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports are not subclasses

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        answer, body = self._answer, b"".join(self._body)
        self._body.clear()
        if answer is not None and not answer.done():
            answer.set_result((self._parser.get_status_code(), body))
        self._parser = httptools.HttpResponseParser(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("the server closed the connection"))

    async def send(self, request: bytes) -> tuple[int, bytes]:
        """Send a request built by `request()`, and return the response's status and body."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    async def expect(self, request: bytes) -> bytes:
        """Send a request and return the body. Raises Failed if the status is not 2xx."""
        status, body = await self.send(request)
        if not 200 <= status < 300:
            raise Failed(f"{status}: {body[:400].decode('utf-8', 'replace')} for {request[:120]!r}")
        return body

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def connect(base: str) -> Connection:
    parts = urlsplit(base)
    for last in (False, False, True):
        try:
            _, made = await asyncio.get_running_loop().create_connection(Connection, parts.hostname, parts.port)
        except OSError:
            if last:
                raise
            await asyncio.sleep(0.5)
        else:
            return made
    raise AssertionError("unreachable")


def request(method: str, path: str, body: bytes = b"", *, key: str | None = None) -> bytes:
    """Build a request as bytes, with an API key if one is given."""
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\n"
    if key is not None:
        head += f"x-api-key: {key}\r\n"
    if body:
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body
