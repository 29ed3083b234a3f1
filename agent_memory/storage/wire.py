"""redis-py's connections, with less work per command: what the request path sends and reads in one round trip.

redis-py opens and watches the connections, speaks to Redis and names its errors. Its asyncio client packs each command in Python, makes a
task for each write and a timer for each reply; together that is more than all the rest of a search. Here commands are packed by hiredis
(as redis-py itself does in its client without asyncio), written at once, and their replies are read by hiredis as they come (`replies`).
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, cast

import redis.asyncio as aioredis
from hiredis import pack_command
from redis._parsers.base import AsyncBaseParser
from redis._parsers.hiredis import NOT_ENOUGH_DATA, _AsyncHiredisParser  # pyright: ignore[reportPrivateUsage]
from redis.asyncio.connection import AbstractConnection, BlockingConnectionPool, Connection, SSLConnection, UnixDomainSocketConnection
from redis.exceptions import ConnectionError, DataError, ResponseError, TimeoutError

from agent_memory.storage.replies import Replies

Command = Sequence[Any] | bytes
"""A name and its arguments, or what is packed already."""


def packed(command: Command) -> bytes:
    """A command as Redis reads it; a name of two words ("SCRIPT LOAD") is two arguments. Raises DataError for what cannot be sent."""
    if isinstance(command, bytes):
        return command
    name = command[0]
    parts = tuple(command) if " " not in name else (*name.split(), *command[1:])
    try:
        return pack_command(parts)
    except TypeError as error:
        raise DataError(f"{name}: {error}") from None


class LeanConnection(AbstractConnection):
    """A connection that writes and reads whole pipelines."""

    def pack_command(self, *args: Any) -> list[bytes]:
        """As in redis-py; bytearrays and memoryviews are left to it."""
        try:
            return [packed(args)]
        except DataError:
            return super().pack_command(*args)

    def pack_commands(self, commands: Iterable[Iterable[Any]]) -> list[bytes]:
        """As in redis-py, in one piece."""
        return [b"".join(part for command in commands for part in self.pack_command(*command))]

    async def exchanged(self, commands: Sequence[Command]) -> list[Any]:
        """The replies, error answers among them as they are. Raises ConnectionError (then the connection is closed) and TimeoutError."""
        loop = asyncio.get_running_loop()
        if not self.is_connected or (self.health_check_interval and loop.time() > self.next_health_check):
            # What was never sent can be asked again by whoever reads; redis-py reconnects and asks for a PONG.
            await self.connect_check_health()
            await self.check_health()
        sent = b"".join(map(packed, commands))
        writer, parser = self._writer, cast("AsyncBaseParser", self._parser)
        assert writer is not None
        try:
            if isinstance(parser, _AsyncHiredisParser) and not await parser.can_read():
                replies = await self._taken(parser, writer, sent, len(commands))
            else:
                replies = await self._read_one_by_one(parser, writer, sent, len(commands))
        except builtins.TimeoutError:
            await self.disconnect(nowait=True)
            raise TimeoutError("Timeout reading from Redis") from None
        except OSError as error:
            await self.disconnect(nowait=True)
            raise ConnectionError(f"Error while speaking to Redis: {error.args}") from error
        except BaseException:
            # Replies that nobody read would answer the next commands.
            await self.disconnect(nowait=True)
            raise
        self.next_health_check = loop.time() + self.health_check_interval
        return replies

    async def _taken(self, parser: _AsyncHiredisParser, writer: asyncio.StreamWriter, sent: bytes, count: int) -> list[Any]:
        """Sends commands and takes their replies as they come."""
        reader = parser._reader  # pyright: ignore[reportPrivateUsage]
        if reader is None or writer.transport.is_closing():
            raise ConnectionError("Connection closed by server.")
        replies = Replies(cast("asyncio.Transport", writer.transport), reader, NOT_ENOUGH_DATA, count, self.socket_timeout)
        writer.write(sent)
        found = await replies.all()
        for pushed in replies.pushed:
            await parser.handle_push_response(pushed)
        return found

    async def _read_one_by_one(self, parser: AsyncBaseParser, writer: asyncio.StreamWriter, sent: bytes, count: int) -> list[Any]:
        """As redis-py does it: with its own parser, and where something has come that nobody asked for."""
        replies: list[Any] = []
        async with asyncio.timeout(self.socket_timeout) as deadline:
            writer.write(sent)
            await writer.drain()
            while len(replies) < count:
                if replies and self.socket_timeout is not None:
                    deadline.reschedule(asyncio.get_running_loop().time() + self.socket_timeout)
                replies.append(await parser.read_response())
        return replies


class _LeanTcp(LeanConnection, Connection):
    pass


class _LeanTls(LeanConnection, SSLConnection):
    pass


class _LeanSocket(LeanConnection, UnixDomainSocketConnection):
    pass


_LEAN: dict[type, type[LeanConnection]] = {Connection: _LeanTcp, SSLConnection: _LeanTls, UnixDomainSocketConnection: _LeanSocket}


class Gate(Protocol):
    """Says whether a Redis may be used now."""

    def check(self) -> None:
        """Raises our error when it may not."""
        ...

    async def met(self, connection: AbstractConnection) -> None:
        """Sees a new connection to it, before anything else uses that. Raises as `check`, and redis-py's errors."""
        ...


class LeanPool(BlockingConnectionPool):
    """A bounded pool that waits. Who finds a connection free, and nobody waiting for one, takes it at once."""

    def __init__(self, *, gate: Gate | None = None, **options: Any) -> None:
        options["connection_class"] = _LEAN[options.get("connection_class", Connection)]
        if gate is not None:
            options["redis_connect_func"] = gate.met
        super().__init__(**options)
        self._gate = gate
        self._waiting = 0

    async def get_connection(self, command_name: str | None = None, *keys: Any, **options: Any) -> Any:
        """A connection. Raises ConnectionError when none came free in time, and what the gate raises."""
        if self._gate is not None:
            self._gate.check()
        if self._waiting or not self.can_get_connection():
            self._waiting += 1
            try:
                return await super().get_connection()
            finally:
                self._waiting -= 1
        connection = self.get_available_connection()
        try:
            await self.ensure_connection(connection)
        except BaseException:
            await self.release(connection)
            raise
        return connection

    async def release(self, connection: AbstractConnection) -> None:
        """Takes a connection back; where nobody waits for one, nobody need be told."""
        if self._waiting or connection.should_reconnect():
            await super().release(connection)
            return
        self._in_use_connections.remove(connection)
        self._available_connections.append(connection)

    async def go_to(self, host: str, port: int) -> None:
        """From now on connections are made to another address; those in use end once they have their replies."""
        self.connection_kwargs.update(host=host, port=port)
        idle, self._available_connections[:] = list(self._available_connections), []
        for connection in self._in_use_connections:
            if isinstance(connection, Connection):
                connection.host, connection.port = host, port
            connection.mark_for_reconnect()
        for connection in idle:
            await connection.disconnect()


async def exchange(client: aioredis.Redis, commands: Sequence[Command]) -> list[Any]:
    """Sends commands in one round trip, once; the replies as Redis gave them, error answers among them. Raises redis-py's errors."""
    pool = client.connection_pool
    connection = cast("LeanConnection", await pool.get_connection())
    try:
        return await connection.exchanged(commands)
    finally:
        await pool.release(connection)


async def command(client: aioredis.Redis, *parts: Any) -> Any:
    """One command's reply. Raises its error answer."""
    reply = (await exchange(client, [parts]))[0]
    if isinstance(reply, ResponseError):
        raise reply
    return reply
