"""Connect to Redis, and translate its errors to `AgentMemoryError`."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import urlsplit

import redis.asyncio as aioredis
from redis import DriverInfo
from redis.asyncio.client import Pipeline
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    ConnectionError,
    ExecAbortError,
    MaxConnectionsError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TimeoutError,
    TryAgainError,
)

from agent_memory.foundation.core.errors import AgentMemoryError, BadInput, ErasureUnderWay, RedisUnavailable, StartupError
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.settings import engine
from agent_memory.foundation.storage.round_trip import BoundedPool, StoreGate, exchange

log = get_logger(__name__)

# Without this, redis-py looks up its own version for every new connection, which takes a millisecond.
_DRIVER = DriverInfo()
# These errors mean that Redis cannot serve a command now, not that the command is wrong.
_AWAY = ("LOADING", "MISCONF", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "UNKILLABLE", "BUSY ", "NOREPLICAS", "OOM", "READONLY")
_TOO_LATE = "Timeout limit was reached"
_NO_INDEX = re.compile(r"(?<![^\s'\"(])([^\s'\"(]+): no such index", re.IGNORECASE)


def connect(url: str, *, pool_size: int, command_timeout: float, protocol: int = 3, gate: StoreGate | None = None) -> aioredis.Redis:
    """Return a client with a bounded connection pool. Commands wait for a free connection.

    The client never retries commands. It checks `gate` when it opens or uses a connection.
    """
    pool = BoundedPool.from_url(
        url,
        max_connections=pool_size,
        timeout=2,
        socket_timeout=command_timeout,
        socket_connect_timeout=command_timeout,
        health_check_interval=15,
        # If the first reply were lost, a retried script could run twice.
        retry=Retry(NoBackoff(), 0),
        protocol=protocol,
        gate=gate,
        driver_info=_DRIVER,
    )
    return aioredis.Redis.from_pool(pool)


def translate_error(error: Exception) -> AgentMemoryError | None:
    """Translate an error from redis-py. Return None if the command itself is invalid."""
    if isinstance(error, AuthenticationError):
        return RedisUnavailable("Redis refuses our credentials: check REDIS_URL", retry_after=5)
    if isinstance(error, MaxConnectionsError):
        return RedisUnavailable("all connections to Redis are taken: try again")
    if isinstance(error, OutOfMemoryError):
        return RedisUnavailable("Redis is out of memory and refuses writes: free memory, or raise maxmemory", retry_after=5)
    if isinstance(error, AskError):  # includes MovedError
        return RedisUnavailable("this part of the data moves to another node of the Redis Cluster: try again", retry_after=2)
    if isinstance(error, ReadOnlyError | BusyLoadingError | ClusterDownError | TryAgainError | TimeoutError | ConnectionError):
        return RedisUnavailable(f"Redis does not answer ({type(error).__name__})")
    if isinstance(error, ExecAbortError | ResponseError):
        # In pipelines, redis-py puts the command before Redis' message.
        reply = str(error).rpartition("of pipeline caused error: ")[2].lstrip("-(\"'")
        if reply.startswith(_AWAY):
            return RedisUnavailable(f"Redis cannot serve this now: {reply[:120]}", retry_after=2)
        if reply.startswith(("ERASING", "ERASED")):
            return ErasureUnderWay(int(reply.split()[1]) / 1000, is_over=reply.startswith("ERASED"))
        if reply.startswith(_TOO_LATE):
            return RedisUnavailable("the search takes too long: add filters, or try again", retry_after=2)
        if missing := _NO_INDEX.search(reply):
            return RedisUnavailable(f"the search index {missing[1]} is missing and is being rebuilt: try again", retry_after=2)
        if reply.startswith("No such scorer"):
            return BadInput("this Redis does not have this scorer: use BM25STD", field="text_scorer")
    return None


@contextmanager
def redis_errors() -> Generator[None]:
    """Translate errors raised in this `with` block, except for invalid commands."""
    try:
        yield
    except (RedisError, OSError) as error:
        if (ours := translate_error(error)) is None:
            raise
        raise ours from error


def shown_url(url: str) -> str:
    """Return a Redis URL with its credentials removed."""
    parts = urlsplit(url)
    address = parts.hostname or parts.path
    return f"{parts.scheme}://{address}{f':{parts.port}' if parts.port else ''}"


async def _set_search_options(client: aioredis.Redis, display_url: str) -> None:
    for name, value in engine.REQUIRED:
        try:
            await client.execute_command("FT.CONFIG", "SET", name, value)
        except RedisError as error:
            log.warning("Redis refuses to set a search option", url=display_url, option=name, value=value, error=str(error)[:120])


async def fsync_always(client: aioredis.Redis, display_url: str) -> None:
    """Make Redis write every change to disk immediately."""
    try:
        await client.config_set("appendfsync", "always")
    except RedisError as error:
        log.warning("Redis refuses to change appendfsync; strict writes may take up to a second", url=display_url, error=str(error)[:120])


async def server_info(client: aioredis.Redis, display_url: str) -> dict[str, Any]:
    """Return the server information, or an empty dict if the Redis user lacks permission.

    Raises StartupError if Redis does not respond.
    """
    try:
        return await client.info("server")
    except NoPermissionError:
        return {}  # The ACL user lacks @dangerous.
    except (RedisError, OSError) as error:
        raise StartupError(f"cannot reach Redis at {display_url}: {str(error)[:200]}") from error


async def check_engine(client: aioredis.Redis, display_url: str) -> str:
    """Configure the query engine, and return the Redis version.

    Raises StartupError if Redis has no query engine.
    """
    info = await server_info(client, display_url)
    try:
        await client.execute_command("FT._LIST")
    except RedisError as error:
        raise StartupError(
            f"the Redis at {display_url} has no query engine (FT._LIST: {str(error)[:80]}): use redis:8, Redis Stack >= 7.2, "
            "or leave REDIS_URL unset for the embedded Redis"
        ) from error
    await _set_search_options(client, display_url)
    version = info.get("redis_version", b"?")
    return version.decode() if isinstance(version, bytes) else str(version)


Pipe = Pipeline


class PipelineReader:
    """Runs several stores' read commands in one round trip."""

    def __init__(self, client: aioredis.Redis) -> None:
        self._client = client

    async def __call__(self, build: Callable[[Pipe], object]) -> list[Any]:
        return await read(self._client, build)


async def read(client: aioredis.Redis, build: Callable[[Pipe], object]) -> list[Any]:
    """Run read-only commands in one round trip.

    Retries once if the connection fails. Raises the first error reply.
    """
    # Only redis-py's pipeline knows the syntax of the commands.
    pipe = client.pipeline(transaction=False)
    build(pipe)
    return await send_reads(client, pipe.command_stack)


async def write(client: aioredis.Redis, build: Callable[[Pipe], object], *, atomic: bool = False) -> list[Any]:
    """Run commands in one round trip without ever repeating a command.

    With `atomic`, the commands run as a transaction. Raises the first error reply.
    """
    with redis_errors():
        async with client.pipeline(transaction=atomic) as pipe:
            build(pipe)
            return await pipe.execute()


async def server_ms(client: aioredis.Redis) -> int:
    """Return the Redis server's time in ms since 1970."""
    ((seconds, micros),) = await read(client, lambda pipe: pipe.time())
    return seconds * 1000 + micros // 1000


async def send_reads(client: aioredis.Redis, commands: Sequence[tuple[tuple[Any, ...], Mapping[str, Any]]]) -> list[Any]:
    """Run a pipeline's commands like `read` does."""
    if not commands:
        return []
    sent = [parts for parts, _ in commands]
    with redis_errors():
        try:
            replies = await exchange(client, sent)
        except (BusyLoadingError, MaxConnectionsError):
            raise
        except ConnectionError:
            replies = await exchange(client, sent)
        callbacks = cast("Mapping[str, Callable[..., Any]]", client.response_callbacks)
        for position, (reply, (parts, options)) in enumerate(zip(replies, commands, strict=True)):
            if isinstance(reply, ResponseError):
                raise reply
            if (callback := callbacks.get(parts[0])) is not None:
                replies[position] = callback(reply, **{name: value for name, value in options.items() if name != "keys"})
    return replies
