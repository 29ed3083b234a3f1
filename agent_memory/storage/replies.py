"""Reading the replies of a pipeline as they come: from the transport into hiredis, and only then to who waits for them.

A StreamReader keeps the bytes, wakes its reader for each piece, and is asked for each reply; that takes longer than hiredis takes to read
them. So for as long as a pipeline is under way, its connection's transport speaks to this protocol instead.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol, cast

from hiredis import PushNotification
from redis.exceptions import ConnectionError


class Reader(Protocol):
    """hiredis' reader."""

    def feed(self, data: bytes, /) -> None: ...
    def gets(self, /) -> Any: ...


class Replies(asyncio.Protocol):
    """Takes what comes until there are `count` replies, or no whole one came for `patience` seconds."""

    def __init__(self, transport: asyncio.Transport, reader: Reader, nothing: object, count: int, patience: float | None) -> None:
        """`nothing` is what the reader gives when it needs more bytes."""
        self._transport = transport
        self._before = cast("asyncio.Protocol", transport.get_protocol())
        self._reader = reader
        self._nothing = nothing
        self._count = count
        self._patience = patience
        self._loop = loop = asyncio.get_running_loop()
        self._done: asyncio.Future[None] = loop.create_future()
        self._heard = loop.time()
        self._timer = None if patience is None else loop.call_later(patience, self._late)
        self.replies: list[Any] = []
        self.pushed: list[PushNotification] = []
        """What Redis sent of its own accord."""
        transport.set_protocol(self)

    async def all(self) -> list[Any]:
        """The replies. Raises TimeoutError, ConnectionError, and what the reader makes of bytes that are no reply."""
        try:
            await self._done
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._transport.set_protocol(self._before)
        return self.replies

    def data_received(self, data: bytes) -> None:
        """Reads all replies that are whole."""
        replies, gets, nothing = self.replies, self._reader.gets, self._nothing
        try:
            self._reader.feed(data)
            while len(replies) < self._count and (reply := gets()) is not nothing:
                if isinstance(reply, PushNotification):
                    self.pushed.append(reply)
                elif isinstance(reply, ConnectionError):
                    raise reply
                else:
                    replies.append(reply)
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to who waits, and would wait in vain otherwise
            self._fail(error)
            return
        if len(replies) == self._count:
            if not self._done.done():
                self._done.set_result(None)
        elif replies:
            self._heard = self._loop.time()

    def eof_received(self) -> bool | None:
        """Redis will send no more."""
        self._fail(ConnectionError("Connection closed by server."))
        return self._before.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tells both who waits and who had the connection before."""
        self._fail(exc or ConnectionError("Connection closed by server."))
        self._before.connection_lost(exc)

    def pause_writing(self) -> None:
        """As the protocol before."""
        self._before.pause_writing()

    def resume_writing(self) -> None:
        """As the protocol before."""
        self._before.resume_writing()

    def _fail(self, error: Exception) -> None:
        if not self._done.done():
            self._done.set_exception(error)

    def _late(self) -> None:
        """Gives up, unless a reply came meanwhile: then there is as much time for the next."""
        patience = cast("float", self._patience)
        left = self._heard + patience - self._loop.time()
        if self.replies and left > 0:
            self._timer = self._loop.call_later(left, self._late)
        else:
            self._fail(TimeoutError())
