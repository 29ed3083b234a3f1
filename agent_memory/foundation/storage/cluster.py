"""Find the Redis node for each bucket, and follow buckets to new nodes.

During a move, requests may fail but never get incomplete data.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

import redis.asyncio as aioredis
from redis.crc import key_slot
from redis.exceptions import RedisError, ResponseError

from agent_memory.foundation.core.errors import AgentMemoryError, StartupError
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.storage.connection import connect, redis_errors, server_info, shown_url
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.round_trip import BoundedPool, StoreGate

log = get_logger(__name__)

_BUCKETS = "buckets"
_LOOK_SECONDS = 2.0


class BucketRedis:
    """A bucket's Redis server and the clients connected to it."""

    def __init__(self, url: str, *, clustered: bool) -> None:
        self.url = url
        self.clustered = clustered
        self.moved = asyncio.Event()
        """Set when the address or the store changes. A new event then replaces this one."""
        self._clients: list[aioredis.Redis] = []

    def remark(self, buckets: int) -> str:
        """Return a short phrase that describes the cluster and the number of buckets."""
        return (" of a Redis Cluster" if self.clustered else "") + (f", {buckets} buckets" if buckets > 1 else "")

    def connect(self, *, pool_size: int, command_timeout: float, protocol: int = 3, gate: StoreGate | None = None) -> aioredis.Redis:
        """Return a client (see `connection.connect`) that follows the bucket to new nodes."""
        client = connect(self.url, pool_size=pool_size, command_timeout=command_timeout, protocol=protocol, gate=gate)
        self._clients.append(client)
        return client

    def renew(self) -> None:
        """Wake up all tasks that are waiting for `moved`."""
        moved, self.moved = self.moved, asyncio.Event()
        moved.set()

    async def move(self, url: str) -> None:
        """Send new commands to the node at `url`. Pending commands finish on the old node."""
        self.url = url
        parts = urlsplit(url)
        for client in self._clients:
            await cast("BoundedPool", client.connection_pool).move_to(parts.hostname or "", parts.port or 6379)
        self.renew()


@dataclass(frozen=True, slots=True)
class ClusterNodes:
    """The nodes of a cluster, as tuples of first slot, last slot, and URL."""

    slots: tuple[tuple[int, int, str], ...]

    def url_of(self, keys: Keys) -> str | None:
        """Return the URL of the node that owns the bucket, or None."""
        slot = key_slot(keys.root.encode())
        return next((url for first, last, url in self.slots if first <= slot <= last), None)


async def _nodes(client: aioredis.Redis, url: str) -> ClusterNodes:
    reply: Any = await client.execute_command("CLUSTER SLOTS")
    return ClusterNodes(tuple((int(first), int(last), _at(url, *primary[:2])) for first, last, primary, *_ in reply))


def _at(url: str, host: Any, port: Any) -> str:
    """Replace the host and port in a URL. If no host is given, keep the old one."""
    parts = urlsplit(url)
    name = (host.decode() if isinstance(host, bytes) else host) or parts.hostname or ""
    name = f"[{name}]" if ":" in name else name
    user, at, _ = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user}{at}{name}:{int(port)}"))


async def locate_buckets(url: str, buckets: Sequence[Keys], *, display_url: str, command_timeout: float) -> list[BucketRedis]:
    """Return the Redis server for each bucket. `url` may be any node of a cluster.

    Raises StartupError if Redis does not respond or if no node owns a bucket's slot.
    """
    client = connect(url, pool_size=1, command_timeout=command_timeout)
    mode: str | None = None
    try:
        mode = (await server_info(client, display_url)).get("redis_mode")
        nodes = None if mode == "standalone" else await _nodes(client, url)
    except ResponseError as error:
        if mode == "cluster":
            raise StartupError(f"the Redis Cluster at {display_url} does not say which node has which slots: {str(error)[:200]}") from error
        nodes = None  # Redis does not report its mode (no permission), and it is not a cluster.
    except (RedisError, OSError) as error:
        raise StartupError(f"cannot reach Redis at {display_url}: {str(error)[:200]}") from error
    finally:
        await client.aclose()
    if nodes is None:
        return [BucketRedis(url, clustered=False) for _ in buckets]
    urls = [(keys, nodes.url_of(keys)) for keys in buckets]
    for keys, node_url in urls:
        if node_url is None:
            raise StartupError(
                f"no node of the Redis Cluster at {display_url} has slot {key_slot(keys.root.encode())}, that of {keys.root}"
            )
    return [BucketRedis(node_url, clustered=True) for _, node_url in urls if node_url is not None]


@asynccontextmanager
async def bucket_clients(url: str, buckets: Sequence[Keys], *, command_timeout: float) -> AsyncGenerator[list[tuple[Keys, aioredis.Redis]]]:
    """Yield each bucket's keys and a client for its node. Raises StartupError."""
    servers = await locate_buckets(url, buckets, display_url=shown_url(url), command_timeout=command_timeout)
    async with AsyncExitStack() as stack:
        clients = [server.connect(pool_size=1, command_timeout=command_timeout) for server in servers]
        for client in clients:
            stack.push_async_callback(client.aclose)
        yield list(zip(buckets, clients, strict=True))


async def is_begun(url: str, home: Keys, *, command_timeout: float) -> bool:
    """True if a store already exists under these keys. Raises StartupError."""
    async with bucket_clients(url, [home], command_timeout=command_timeout) as ((_, client),):
        with redis_errors():
            return bool(await client.exists(home.config))


async def ensure_buckets(client: aioredis.Redis, home: Keys, bucket_count: int) -> None:
    """Record the number of buckets in a new store. Call this before creating indexes.

    Several processes may call this at the same time. Raises StartupError if the store has a different number.
    """
    with redis_errors():
        await client.hsetnx(home.config, _BUCKETS, str(bucket_count))
        recorded = int(await client.hget(home.config, _BUCKETS) or bucket_count)
    if recorded != bucket_count:
        raise wrong_bucket_count(recorded, bucket_count)


def wrong_bucket_count(recorded: int, bucket_count: int) -> StartupError:
    return StartupError(
        f"setting REDIS_BUCKETS: this store has {recorded} buckets, not {bucket_count}, and the number cannot change. "
        f"Set REDIS_BUCKETS={recorded}, or move the data to a new store with `agent-memory export` and `import`"
    )


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket that may move to another node, which `prepare` then sets up."""

    keys: Keys
    bucket_redis: BucketRedis
    prepare: Callable[[aioredis.Redis, str], Awaitable[object]]


async def end_task(task: asyncio.Task[None]) -> None:
    """Cancel a task that uses Redis, and wait for it to end."""
    while not task.done():
        # While connecting, a cancellation can become a connection error and get lost. Cancel again.
        task.cancel()
        await asyncio.wait([task], timeout=0.1)


@asynccontextmanager
async def following(buckets: Sequence[Bucket], *, command_timeout: float) -> AsyncGenerator[None]:
    """Follow buckets to new nodes while the `async with` block runs."""
    task = asyncio.create_task(_follow(buckets, command_timeout), name="following-buckets")
    try:
        yield
    finally:
        await end_task(task)


async def _follow(buckets: Sequence[Bucket], command_timeout: float) -> None:
    node_urls = list(dict.fromkeys(bucket.bucket_redis.url for bucket in buckets))
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        nodes = await _ask_any(node_urls, command_timeout)
        if nodes is None:
            log.warning("no node of the Redis Cluster answers", nodes=len(node_urls))
            continue
        node_urls = list(dict.fromkeys([url for _, _, url in nodes.slots] + node_urls))
        for bucket in buckets:
            url = nodes.url_of(bucket.keys)
            if url is not None and url != bucket.bucket_redis.url:
                await _go(bucket, url, command_timeout)


async def _ask_any(node_urls: Sequence[str], command_timeout: float) -> ClusterNodes | None:
    for url in node_urls:
        client = connect(url, pool_size=1, command_timeout=command_timeout)
        try:
            return await _nodes(client, url)
        except (RedisError, OSError):
            continue
        finally:
            await client.aclose()
    return None


async def _go(bucket: Bucket, url: str, command_timeout: float) -> None:
    client = connect(url, pool_size=2, command_timeout=command_timeout)
    try:
        await bucket.prepare(client, url)
    except (AgentMemoryError, RedisError, OSError) as error:
        log.warning("bucket has moved, and its new node is not ready", key_prefix=bucket.keys.root, error=error)
        return
    finally:
        await client.aclose()
    await bucket.bucket_redis.move(url)
    log.warning("bucket has moved to another node of the Redis Cluster", key_prefix=bucket.keys.root)
