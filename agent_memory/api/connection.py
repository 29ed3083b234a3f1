"""uvicorn's HTTP protocol, with one system call per answer: it writes an answer's head and body apart, each at once."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# Up to so many bytes, uvloop sends one piece sooner than two.
_COPIED = 64 * 1024


class _Joined:
    """A transport that keeps a write until the next one, which goes out with it, but not beyond this turn of the event loop."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._kept = b""
        self.is_closing = transport.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self._kept:
            kept, self._kept = self._kept, b""
            if len(data) <= _COPIED:
                self._transport.write(kept + data)
            else:
                self._transport.writelines((kept, data))
        else:
            self._kept = data
            self._loop.call_soon(self._flush)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._kept:
            kept, self._kept = self._kept, b""
            self._transport.write(kept)


class HttpProtocol(HttpToolsProtocol):
    """One connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """See asyncio.Protocol."""
        super().connection_made(cast("asyncio.Transport", _Joined(transport, self.loop)))
