"""Open a bucket's resources, and close them in reverse order."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from redis.asyncio import Redis
from redisvl.schema import IndexSchema

from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.base import ChatModel, Embedder, Reranker
from agent_memory.foundation.llm.local.weights import LATIN_ONLY
from agent_memory.foundation.llm.providers import Models
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.storage.cluster import BucketRedis, ensure_buckets
from agent_memory.foundation.storage.connection import check_engine, fsync_always, redis_errors, shown_url
from agent_memory.foundation.storage.keyed_ids import KeyedIds
from agent_memory.foundation.storage.keyspace import Keys, bucket_of
from agent_memory.foundation.storage.outbox import Outbox
from agent_memory.foundation.storage.search.indexes import (
    VectorSpec,
    ensure_index,
    note_built,
)
from agent_memory.foundation.storage.search.list_replies import SearchReader, answers_in_lists
from agent_memory.foundation.storage.store_marker import StoreFile
from agent_memory.foundation.storage.store_watch import StoreWatch

if TYPE_CHECKING:
    from docket import Docket

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Foundation:
    """One bucket of the store and the models that all buckets share."""

    settings: Settings
    keys: Keys
    bucket_redis: BucketRedis
    watch: StoreWatch
    client: Redis
    reader: SearchReader
    outbox: Outbox
    spec: VectorSpec
    schemas: Mapping[str, IndexSchema]
    """The search indexes by document kind."""
    ids: KeyedIds
    embedder: Embedder
    chat: ChatModel | None
    reranker: Reranker | None
    counter: TokenCounter
    redis_description: str
    models_description: str
    on_close: Callable[[Callable[[], Awaitable[None]]], object]
    """Register a callback to run on close. The last one runs first."""
    buckets: Sequence[Foundation] = field(repr=False, compare=False)
    """All buckets in the store, in order. Complete once all are open. The first one, with all API keys, opens first."""

    def bucket(self, tenant: str) -> Foundation:
        """Return the bucket with the tenant's data. Call this once all buckets are open."""
        return self.buckets[bucket_of(tenant, len(self.buckets))]

    @property
    def fsync(self) -> bool:
        """True if Redis writes each change to disk before acknowledging it."""
        return self.settings.redis.durability == "strict"

    @property
    def redis_url(self) -> str:
        return self.bucket_redis.url

    @property
    def extracts(self) -> bool:
        """True if a chat model extracts facts."""
        longterm = self.settings.longterm
        return longterm.enabled and longterm.extract_facts and self.chat is not None

    @property
    def promotes(self) -> bool:
        """True if messages are turned into long-term memories."""
        return self.settings.longterm.enabled and self.settings.longterm.promote_messages

    def docket(self) -> Docket:
        """Return this bucket's task queue for a worker."""
        # Importing docket takes 0.3 s; only workers need it.
        from docket import Docket  # noqa: PLC0415

        alone = self.settings.redis.buckets == 1 and not self.bucket_redis.clustered
        # On a cluster, a docket's keys must share a slot.
        name = f"{self.keys.prefix}:" if alone else self.keys.root
        joint = "&" if "?" in self.redis_url else "?"
        url = f"{self.redis_url}{joint}max_connections={self.settings.worker.concurrency + 64}"
        # Keep no record of a finished run. A redelivered message would set it to running, and docket would refuse the
        # next task with the same key until the record expires.
        return Docket(name=name + self.settings.worker.docket_name, url=url, execution_ttl=timedelta(0))

    async def queued(self, docket: Docket) -> int:
        """Return the number of waiting and running tasks in a docket."""
        with redis_errors():
            return int(await self.client.xlen(docket.stream_key))


async def prepare_bucket(settings: Settings, keys: Keys, schemas: Collection[IndexSchema], client: Redis, url: str) -> None:
    """Configure a bucket's Redis and create its indexes. Raises StartupError."""
    await _check(settings, keys, client, url)
    await _make_indexes(keys, schemas, client)


@asynccontextmanager
async def open_foundation(
    settings: Settings,
    bucket_redis: BucketRedis,
    keys: Keys,
    models: Models,
    embedder: Embedder,
    spec: VectorSpec,
    schemas: Mapping[str, IndexSchema],
    file: StoreFile | None,
    buckets: list[Foundation],
    *,
    begin: bool,
) -> AsyncGenerator[Foundation]:
    """Open a bucket and add it to `buckets`. Raises StartupError.

    If `begin` is true, create the store if necessary.
    """
    async with AsyncExitStack() as stack:
        timeout = settings.redis.command_timeout_seconds
        # The watch needs its own client, because the gate closes the store to all other clients until it is ready.
        unguarded = bucket_redis.connect(pool_size=4, command_timeout=timeout)
        stack.push_async_callback(unguarded.aclose)
        shown = shown_url(bucket_redis.url)
        check = partial(_check, settings, keys, unguarded, bucket_redis.url) if begin else partial(check_engine, unguarded, shown)
        watch = StoreWatch(unguarded, keys, file, schemas=tuple(schemas.values()) if begin else (), makes=begin)
        version = await _open_watch(watch, keys, unguarded, check)
        if watch.intact and begin:
            await _make_indexes(keys, schemas.values(), unguarded)
        if settings.models.embeds_latin_only and begin:
            log.info("embedding model knows only Latin scripts", model=embedder.model, hint=LATIN_ONLY)
        watch.on_renewal(check)
        watch.on_renewal(bucket_redis.renew)
        await stack.enter_async_context(watch.running())
        connect = partial(bucket_redis.connect, pool_size=settings.redis.pool_size, command_timeout=timeout, gate=watch)
        client = connect()
        stack.push_async_callback(client.aclose)
        lists = connect(protocol=2) if version is not None and await answers_in_lists(unguarded) else None
        if lists is not None:
            stack.push_async_callback(lists.aclose)
        ids = KeyedIds()
        if watch.intact and begin:
            await ids.load(unguarded, keys)
        watch.on_renewal(partial(ids.load, unguarded, keys))
        foundation = Foundation(
            settings=settings,
            keys=keys,
            bucket_redis=bucket_redis,
            watch=watch,
            client=client,
            reader=SearchReader(client, lists),
            outbox=Outbox(client, keys),
            spec=spec,
            schemas=schemas,
            ids=ids,
            embedder=embedder,
            chat=models.chat,
            reranker=models.reranker,
            counter=models.counter,
            redis_description=f"Redis {version} at {shown}" + bucket_redis.remark(settings.redis.buckets),
            models_description=models.description,
            on_close=stack.push_async_callback,
            buckets=buckets,
        )
        buckets.append(foundation)
        yield foundation


async def _open_watch(watch: StoreWatch, keys: Keys, client: Redis, check: Callable[[], Awaitable[str]]) -> str | None:
    """Return the version of Redis, or None if a bucket other than the first must wait for its Redis."""
    if keys.bucket > 0:
        try:
            with redis_errors():
                await client.ping()
        except RedisUnavailable as error:
            watch.await_answer(error)
            return None
    version = await check()
    await watch.open()
    return version


async def _check(settings: Settings, keys: Keys, client: Redis, url: str) -> str:
    """Check and configure a bucket's Redis, and return its version. Raises StartupError."""
    display_url = shown_url(url)
    version = await check_engine(client, display_url)
    if keys.bucket == 0:
        await ensure_buckets(client, keys, settings.redis.buckets)
    if settings.redis.durability == "strict":
        await fsync_always(client, display_url)
    return version


async def _make_indexes(keys: Keys, schemas: Collection[IndexSchema], client: Redis) -> None:
    for schema in schemas:
        await ensure_index(client, keys, schema)
    await note_built(client, keys)
