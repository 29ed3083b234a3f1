"""Opening Redis, and the border where its errors become ours."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from time import monotonic
from types import TracebackType
from typing import Any, cast
from urllib.parse import urlsplit

import redis.asyncio as aioredis
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

from agent_memory import search_options
from agent_memory.errors import AgentMemoryError, BadInput, RedisUnavailable, StartupError
from agent_memory.storage.wire import Command, Gate, LeanPool, exchange

log = logging.getLogger(__name__)

_ASK_ON_TIMEOUT = ("FT.CONFIG", "GET", "ON_TIMEOUT")
_DISTRUST_SECONDS = 60.0
# A module's version as one number: two digits for each part.
_SEARCH_3 = 3_00_00
# Error answers that mean "not now" rather than "this command is wrong".
_AWAY = ("LOADING", "MISCONF", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "UNKILLABLE", "BUSY ", "NOREPLICAS", "OOM", "READONLY")
_TOO_LATE = "Timeout limit was reached"
_NO_INDEX = re.compile(r"(?<![^\s'\"(])([^\s'\"(]+): no such index", re.IGNORECASE)


def connect(url: str, *, pool_size: int, command_timeout: float, protocol: int = 3, gate: Gate | None = None) -> aioredis.Redis:
    """A client over a bounded pool that waits instead of failing when all connections are taken. It speaks RESP3 unless told otherwise.

    It never repeats a command by itself: redis-py would run a script whose reply was lost a second time. A `gate` is asked before each
    use of a connection, and with each new one.
    """
    pool = LeanPool.from_url(
        url,
        max_connections=pool_size,
        timeout=2,
        socket_timeout=command_timeout,
        socket_connect_timeout=command_timeout,
        health_check_interval=15,
        retry=Retry(NoBackoff(), 0),
        protocol=protocol,
        gate=gate,
    )
    return aioredis.Redis.from_pool(pool)


def translated(error: Exception) -> AgentMemoryError | None:
    """Our error for one of redis-py's, or None when it is not about Redis being away."""
    if isinstance(error, AuthenticationError):
        return RedisUnavailable("Redis refuses our credentials", retry_after=5)
    if _pool_exhausted(error):
        return RedisUnavailable("all connections to Redis are taken")
    if isinstance(error, OutOfMemoryError):
        return RedisUnavailable("Redis is out of memory and refuses writes", retry_after=5)
    if isinstance(error, AskError):  # MovedError is one, too
        return RedisUnavailable("this part of the data moves to another node of the Redis Cluster", retry_after=2)
    if isinstance(error, ReadOnlyError | BusyLoadingError | ClusterDownError | TryAgainError | TimeoutError | ConnectionError):
        return RedisUnavailable(f"Redis does not answer ({type(error).__name__})")
    if isinstance(error, ExecAbortError | ResponseError):
        # In a pipeline redis-py puts the command in front of what Redis said.
        said = str(error).rpartition("of pipeline caused error: ")[2].lstrip("-(\"'")
        if said.startswith(_AWAY):
            return RedisUnavailable(f"Redis cannot serve this now: {said[:120]}", retry_after=2)
        if said.startswith(_TOO_LATE):
            return RedisUnavailable("the search takes too long, and half an answer is none", retry_after=2)
        if missing := _NO_INDEX.search(said):
            return RedisUnavailable(f"the search index {missing[1]} is gone and is being built again: try again", retry_after=2)
        if said.startswith("No such scorer"):
            return BadInput("this Redis does not have this scorer: use BM25STD", field="text_scorer")
    return None


def _pool_exhausted(error: Exception) -> bool:
    """Whether no connection came free in time; the blocking pool says so in a plain ConnectionError."""
    waited = isinstance(error, ConnectionError) and str(error).startswith("No connection available")
    return isinstance(error, MaxConnectionsError) or waited


class _RedisErrors:
    """No generator: each read of each request goes through here."""

    __slots__ = ()

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, (RedisError, OSError)):
            ours = translated(error)
            if ours is not None:
                raise ours from error


_TRANSLATING = _RedisErrors()


def redis_errors() -> AbstractContextManager[None, None]:
    """Turns redis-py's "not now" errors into RedisUnavailable; a wrong command stays an error of its own (a defect of ours)."""
    return _TRANSLATING


def shown_url(url: str) -> str:
    """A Redis URL without its credentials."""
    parts = urlsplit(url)
    place = parts.hostname or parts.path
    return f"{parts.scheme}://{place}{f':{parts.port}' if parts.port else ''}"


async def _set_search_options(client: aioredis.Redis, shown: str) -> None:
    """Sets what our searches rely on; a Redis that does not let us is used all the same, and that is said."""
    for name, value in search_options.REQUIRED:
        try:
            await client.execute_command("FT.CONFIG", "SET", name, value)
        except RedisError as error:
            log.warning("the Redis at %s does not let us set the search option %s to %s: %s", shown, name, value, str(error)[:120])


async def fsync_always(client: aioredis.Redis, shown: str) -> None:
    """Lets Redis write each change to its disk at once: `WAITAOF` then need not wait for the next second."""
    try:
        await client.config_set("appendfsync", "always")
    except RedisError as error:
        log.warning("the Redis at %s does not let us set appendfsync: strict writes may wait up to a second: %s", shown, str(error)[:120])


async def server_info(client: aioredis.Redis, shown: str) -> dict[str, Any]:
    """What Redis says of itself; nothing when it may not. Raises StartupError in one line when it does not answer."""
    try:
        return await client.info("server")
    except NoPermissionError:
        return {}  # An ACL user without @dangerous.
    except (RedisError, OSError) as error:
        raise StartupError(f"cannot reach Redis at {shown}: {str(error)[:200]}") from error


async def check_engine(client: aioredis.Redis, shown: str) -> str:
    """Returns "<version>" of a Redis that has the query engine. Raises StartupError in one line otherwise."""
    info = await server_info(client, shown)
    try:
        await client.execute_command("FT._LIST")
    except RedisError as error:
        raise StartupError(
            f"the Redis at {shown} has no query engine (FT._LIST: {str(error)[:80]}): use redis:8, Redis Stack >= 7.2, or leave REDIS_URL "
            "unset for the embedded Redis"
        ) from error
    await _set_search_options(client, shown)
    version = info.get("redis_version", b"?")
    return version.decode() if isinstance(version, bytes) else str(version)


Pipe = Pipeline


class _Builder(Pipeline):
    """Commands in a row, which somebody else sends."""

    def __init__(self, client: aioredis.Redis) -> None:
        self.asked: list[tuple[Command, Mapping[str, Any]]] = []
        self.response_callbacks = client.response_callbacks

    def execute_command(self, *args: Any, **options: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Puts a command at the end."""
        self.asked.append((args, options))
        return self


def queue_packed(pipe: Pipe, command: bytes) -> None:
    """Puts a command at the end that is packed already, and whose reply is taken as it is."""
    cast("_Builder", pipe).asked.append((command, _NO_OPTIONS))


_NO_OPTIONS: Mapping[str, Any] = {}


class Reader:
    """Reads in one round trip, for services that put the reads of several stores on one pipeline."""

    def __init__(self, client: aioredis.Redis) -> None:
        self._client = client

    async def __call__(self, build: Callable[[Pipe], object]) -> list[Any]:
        """As `read`."""
        return await read(self._client, build)


class SearchReader(Reader):
    """Reads what holds searches, over RESP2 where that cannot hide anything.

    RESP3 has a map of maps for each hit, which takes Redis twice and us eight times as long as RESP2's list, and warnings beside them. The
    one that RediSearch 2 has for a search without prefixes, "this is only what I have found in time", is an error for an engine whose
    ON_TIMEOUT is "fail": so each pipeline asks for that, too. Newer engines warn of more, and are always asked over RESP3.
    """

    def __init__(self, client: aioredis.Redis, lists: aioredis.Redis | None) -> None:
        """`lists` speaks RESP2; None where it is not to be used."""
        super().__init__(client)
        self._lists = lists
        self._not_before = 0.0

    async def __call__(self, build: Callable[[Pipe], object]) -> list[Any]:
        """As `read`."""
        if self._lists is not None and monotonic() >= self._not_before:

            def checked(pipe: Pipe) -> None:
                pipe.execute_command(*_ASK_ON_TIMEOUT)
                build(pipe)
                for parts, _ in cast("_Builder", pipe).asked:
                    if not isinstance(parts, bytes) and parts[0] == "FT.SEARCH" and "*}" in parts[2]:
                        raise _Prefixes

            try:
                how, *replies = await read(self._lists, checked)
                if _fails_late(how):
                    return replies
                self._not_before = monotonic() + _DISTRUST_SECONDS
            except _Prefixes:
                pass
            except NoPermissionError:
                self._not_before = monotonic() + _DISTRUST_SECONDS
        return await super().__call__(build)


class _Prefixes(Exception):
    """A search has a prefix, which may stand for more values than the engine looks at."""


def _fails_late(reply: Any) -> bool:
    """Whether an engine that answers this about ON_TIMEOUT, a map or a list of pairs, fails where it has not found everything in time."""
    return dict(reply).get(b"ON_TIMEOUT") == b"fail"


async def answers_in_lists(client: aioredis.Redis) -> bool:
    """Whether a Redis, asked over RESP2, is one that `SearchReader` may use."""
    try:
        modules = (await client.info("modules"))["modules"]
        version = next(int(module["ver"]) for module in modules if module["name"] == "search")
        return version < _SEARCH_3 and _fails_late(await client.execute_command(*_ASK_ON_TIMEOUT))
    except (RedisError, OSError, KeyError, ValueError, TypeError, StopIteration):
        return False


async def read(client: aioredis.Redis, build: Callable[[Pipeline], object]) -> list[Any]:
    """Runs reads in one round trip, a second time when the connection was lost; raises RedisUnavailable, and the first error answer.

    Only for commands that change nothing.
    """
    # redis-py's pipeline is the builder only: it knows how its commands are spelt and how their replies are read.
    pipe = _Builder(client)
    build(pipe)
    asked = pipe.asked
    if not asked:
        return []
    commands = [parts for parts, _ in asked]
    with redis_errors():
        for last in (False, True):
            try:
                replies = await exchange(client, commands)
                break
            except BusyLoadingError:
                raise
            except ConnectionError as error:
                # Who waited in vain for a connection has had its time.
                if last or _pool_exhausted(error):
                    raise
        else:
            raise AssertionError("unreachable")
        # Keyed by upper-case names, as commands are spelt here; its own `get` would make them so each time.
        callbacks = cast("dict[str, Callable[..., Any]]", client.response_callbacks)
        for place, (reply, (parts, options)) in enumerate(zip(replies, asked, strict=True)):
            if isinstance(reply, ResponseError):
                raise reply
            callback = dict.get(callbacks, parts[0])
            if callback is not None:
                replies[place] = callback(reply, **{name: value for name, value in options.items() if name != "keys"})
    return replies
