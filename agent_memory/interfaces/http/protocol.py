"""Limit the size and duration of request headers in uvicorn's HTTP protocol.

The server closes connections that are silent or remain incomplete. See
docs/adr/0002-bounds-on-heads.md. For limits on bodies, see `middleware/body_deadline.py`.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from agent_memory.foundation.api.errors import render
from agent_memory.foundation.core.errors import AgentMemoryError, RequestTimeout, TooLarge
from agent_memory.foundation.core.settings import Settings
from agent_memory.interfaces.http.draining import LINGER_SECONDS, last_answer
from agent_memory.interfaces.http.middleware.body_deadline import BODY_COMPLETE, REFUSAL

# This is longer than clients keep idle connections: a request in transit to a closed connection is lost.
KEEP_ALIVE_SECONDS = 75
# Limit for a request without its body; a query may name thousands of ids.
MAX_HEAD_BYTES = 1024 * 1024
# More checks after the deadline: timers run before received data is read, and the loop may have stalled.
_LOOKS = 3
_LOOK_SECONDS = 0.05


class HeadTooLarge(TooLarge):
    """The headers or trailers are larger than MAX_HEAD_BYTES."""

    status = 431


def http_protocol(settings: Settings) -> type[Connection]:
    """Return the connection class for `uvicorn.Config(http=...)`."""

    class BoundedConnection(Connection):
        head_seconds = settings.server.head_timeout_seconds

    return BoundedConnection


class JoinedWrites:
    """A transport that sends a response's headers together with its body, which saves 20 µs.

    For streams, headers are sent immediately.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._head and data[:5] == b"HTTP/" and data[-4:] == b"\r\n\r\n" and b"\r\ncontent-length: " in data:
            self._head = data
        else:
            self._transport.write(self._head + data)
            self._head = b""

    def flush(self) -> None:
        """Send headers that are not followed by a body."""
        if self._head:
            self.write(b"")

    def write_eof(self) -> None:
        self.flush()
        self._transport.write_eof()

    def close(self) -> None:
        self.flush()
        self._transport.close()


class Connection(HttpToolsProtocol):
    """A connection that gives a request's headers `head_seconds` to arrive."""

    head_seconds: float

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._receiving = False  # a request has started to arrive and is incomplete
        self._in_head = False
        self._bytes_beside_body = 0  # bytes since the last piece of a body
        self._timer: asyncio.TimerHandle | None = None
        self._has_ended = False  # the last answer was written; ignore further data

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the keep-alive timer, so that new connections time out if they stay silent."""
        self._joined = JoinedWrites(transport)
        super().connection_made(cast("asyncio.Transport", self._joined))
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._has_ended:
            return
        self._bytes_beside_body += len(data)
        super().data_received(data)
        if self._receiving:
            self._watch()

    def on_message_begin(self) -> None:
        self._receiving = self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head, self._bytes_beside_body = False, 0
        self._stop_timer()
        super().on_headers_complete()
        # Trailers are not request headers (RFC 9110, 6.5.1).
        self.headers = []

    def on_body(self, body: bytes) -> None:
        self._bytes_beside_body = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._receiving, self._bytes_beside_body = False, 0
        self._stop_timer()
        self.scope[BODY_COMPLETE] = True  # type: ignore[typeddict-unknown-key]
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._joined.flush()
        super().on_response_complete()
        if self._receiving:
            self._watch()

    def shutdown(self) -> None:
        """Respond to requests that have already arrived, and close the connection."""
        self._close_when_idle(_LOOKS)

    def _close_when_idle(self, turns: int) -> None:
        if self.transport.is_closing() or self._has_ended:
            return
        if self._is_working():
            super().shutdown()
        elif turns and not self._receiving:
            self.loop.call_soon(self._close_when_idle, turns - 1)
        elif not self._receiving:
            self._has_ended = True
            self.transport.write(last_answer())
            self.transport.write_eof()
            self.loop.call_later(LINGER_SECONDS, self.transport.close)

    def _is_working(self) -> bool:
        return bool(self.cycle) and not self.cycle.response_complete

    def _watch(self) -> None:
        """Reject headers that are too large, or start the timer.

        Call this after reading part of a request, or after responding to an incomplete one.
        """
        if self.transport.is_closing():
            return
        if self._bytes_beside_body > MAX_HEAD_BYTES:
            message = f"the head of the request is larger than {MAX_HEAD_BYTES} bytes: send long values in the body"
            self._refuse(HeadTooLarge(message))
        elif self._timer is None and (self._in_head or not self._is_working()):
            self._timer = self.loop.call_later(self.head_seconds, self._time_over, _LOOKS)

    def _time_over(self, looks: int) -> None:
        if self.flow.read_paused:  # reading is paused by us, so the sender is not late
            self._timer = self.loop.call_later(self.head_seconds, self._time_over, _LOOKS)
        elif looks:
            self._timer = self.loop.call_later(_LOOK_SECONDS, self._time_over, looks - 1)
        else:
            within = f"within {self.head_seconds:g} s"
            self._refuse(
                RequestTimeout(f"the head of the request did not arrive {within}: send it without pauses, or raise HEAD_TIMEOUT_SECONDS")
            )

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, error: AgentMemoryError) -> None:
        self._stop_timer()
        if not self._is_working():
            if self._in_head:
                body = bytes(render(error).body)
                head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
                self.transport.write(STATUS_LINE[error.status] + head + body)
            self.transport.close()
            return
        self.cycle.keep_alive = False
        self.flow.pause_reading()
        if not self._in_head:
            # The code that reads the body sends the answer.
            self.cycle.scope[REFUSAL] = error  # type: ignore[literal-required]
            self.cycle.message_event.set()
