"""Open the foundation and the features, and close them in reverse order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from redisvl.schema import IndexSchema

from agent_memory.feature_list import FEATURES
from agent_memory.features.recall.service import RecallService
from agent_memory.features.reembed.embedding_choice import EmbeddingChoice
from agent_memory.features.reembed.store import ReembedStore
from agent_memory.features.reembed.switch import ModelSwitch
from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.foundation import Foundation, open_foundation, prepare_bucket
from agent_memory.foundation.llm.local.weights import PACKAGES
from agent_memory.foundation.llm.profiles import profile_of
from agent_memory.foundation.llm.providers import Models, open_models
from agent_memory.foundation.llm.wrappers.caching import CachingEmbedder
from agent_memory.foundation.llm.wrappers.profiled import ProfiledEmbedder
from agent_memory.foundation.storage.cluster import Bucket, bucket_clients, following, locate_buckets
from agent_memory.foundation.storage.connection import read, shown_url
from agent_memory.foundation.storage.embedding_means import EmbeddingMeans
from agent_memory.foundation.storage.keyspace import Keys, bucket_of
from agent_memory.foundation.storage.outbox import Backlog, sum_backlogs
from agent_memory.foundation.storage.search.indexes import VectorSpec, ensure_index, shared_schemas
from agent_memory.foundation.storage.store_marker import StoreFile
from agent_memory.foundation.storage.store_watch import Problem

log = get_logger(__name__)

# A vector with 384 dimensions takes about 1.5 kB.
_CACHED_VECTORS = 20_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a process is ready, with its checks and problems."""

    ok: bool
    checks: dict[str, Any]
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Runtime(Foundation):
    """Everything that a process has opened for one bucket.

    `runtime[SearchService]` returns the service of that type. Use the first bucket's runtime, which
    contains all `others`, for credentials and request limits. Use `of` for tenant data.

    If `switch` is set, the embedding model can change. Read `current` only once to get an embedder
    and a store for the same model.
    """

    own: Services
    others: tuple[Runtime, ...] = ()
    switch: ModelSwitch[Runtime] | None = None

    @property
    def current(self) -> Runtime:
        """This bucket's runtime for the model that searches currently use."""
        return self if self.switch is None else self.switch.active(self.keys.bucket)

    @property
    def services(self) -> Services:
        return self.current.own

    def __getitem__(self, kind: type[T]) -> T:
        return self.services[kind]

    @property
    def all(self) -> tuple[Runtime, ...]:
        """The runtimes of all buckets, starting with this one."""
        return (self, *self.others)

    def of(self, tenant: str) -> Runtime:
        """Return the runtime for the tenant's bucket."""
        return (self.all[bucket_of(tenant, len(self.others) + 1)] if self.others else self).current

    async def ready(self) -> Readiness:
        """Return whether the process is ready, with check results and pending work.

        The checks are at most a second old. Only problems in the first bucket affect readiness. A
        problem in another bucket causes 503 responses for its tenants.
        """
        looks = await asyncio.gather(*(bucket.watch.look() for bucket in self.all))
        backlogs = await self._backlogs()
        checks: dict[str, Any] = {"redis": "ok", "models": self.current.models_description}
        if self.chat is not None:
            limit = self.chat.context.limit
            checks["context"] = {"tokens": limit.tokens, "source": limit.source}
        away: dict[str, tuple[Problem, ...]] = {}
        readable: list[dict[DueKind, Backlog]] = []
        for bucket, problems, backlog in zip(self.all, looks, backlogs, strict=True):
            if isinstance(backlog, RedisUnavailable):
                problems = problems or (Problem(backlog.code, backlog.message),)
            else:
                readable.append(backlog)
            if problems:
                away[str(bucket.keys.bucket)] = problems
        if readable:
            checks["work"] = {
                kind.value: {"pending": b.pending, "dead": b.dead, "oldest_seconds": round(b.oldest_seconds, 3)}
                for kind, b in sum_backlogs(readable).items()
            }
        problems = away.pop("0", ())
        if problems:
            checks["redis"] = problems[0].message
        if away:
            checks["buckets_away"] = {bucket: wrong[0].message for bucket, wrong in away.items()}
        return Readiness(not problems, checks, problems)

    async def backlog(self) -> dict[DueKind, Backlog]:
        """Return the combined pending work of all reachable buckets. Raises RedisUnavailable if none is."""
        backlogs = await self._backlogs()
        readable = [backlog for backlog in backlogs if not isinstance(backlog, RedisUnavailable)]
        if not readable and isinstance(backlogs[0], RedisUnavailable):
            raise backlogs[0]
        return sum_backlogs(readable)

    async def _backlogs(self) -> list[dict[DueKind, Backlog] | RedisUnavailable]:
        async def look(bucket: Runtime) -> dict[DueKind, Backlog] | RedisUnavailable:
            try:
                return await bucket.outbox.backlog()
            except RedisUnavailable as error:
                return error

        return await asyncio.gather(*map(look, self.all))


def _schemas(keys: Keys, spec: VectorSpec) -> dict[str, IndexSchema]:
    schemas = shared_schemas(keys, spec)
    for feature in FEATURES:
        if feature.indexes is not None:
            schemas |= feature.indexes(keys, spec)
    return schemas


@asynccontextmanager
async def open_runtime(settings: Settings, redis_url: str, *, data_dir: Path | None = None, begin: bool = True) -> AsyncGenerator[Runtime]:
    """Open all buckets and yield the first runtime, which contains the others.

    `data_dir` is the directory of an embedded Redis. If `begin` is true, create the store and
    indexes if they are missing. Raises StartupError.
    """
    options = settings.redis
    timeout = options.command_timeout_seconds
    buckets = [Keys(options.key_prefix, number) for number in range(options.buckets)]
    async with AsyncExitStack() as stack:
        bucket_redises = await locate_buckets(redis_url, buckets, display_url=shown_url(redis_url), command_timeout=timeout)
        settings, hint = await choose_model(settings, redis_url)
        if hint:
            log.warning("store keeps its embedding model", model=EmbeddingChoice.of(settings.models).model, hint=hint)
        own, models, embedder, spec = await _open_embedder(settings, stack)
        # The first bucket opens first: it checks the number of buckets before any index is created.
        file = None if data_dir is None else StoreFile(data_dir)
        if file is not None:
            file.require_buckets(buckets)
        foundations: list[Foundation] = []
        home, *others = [
            _open_features(
                await stack.enter_async_context(
                    open_foundation(own, bucket_redis, keys, models, embedder, spec, _schemas(keys, spec), file, foundations, begin=begin)
                )
            )
            for bucket_redis, keys in zip(bucket_redises, buckets, strict=True)
        ]
        opened = (home, *others)
        embedder.keep_mean_in(EmbeddingMeans(home.client, home.keys, spec))
        if home.bucket_redis.clustered:
            movable = [
                Bucket(keys, bucket_redis, partial(prepare_bucket, own, keys, _schemas(keys, spec).values()))
                for keys, bucket_redis in zip(buckets, bucket_redises, strict=True)
            ]
            await stack.enter_async_context(following(movable, command_timeout=timeout))
        switch = _model_switch(settings, opened, stack)
        if begin:
            await switch.follow(other=False)
            await stack.enter_async_context(switch.running())
        home, *others = [replace(bucket, switch=switch) for bucket in opened]
        yield replace(home, others=tuple(others)) if others else home


async def _open_embedder(settings: Settings, stack: AsyncExitStack) -> tuple[Settings, Models, ProfiledEmbedder, VectorSpec]:
    """Open the configured models. The settings returned include the similarity threshold."""
    models = await open_models(settings)
    stack.push_async_callback(models.close)
    profile = profile_of(models.embedder.model)
    if "min_similarity" not in settings.search.model_fields_set:
        settings = settings.model_copy(update={"search": settings.search.model_copy(update={"min_similarity": profile.least})})
    embedder = ProfiledEmbedder(CachingEmbedder(models.embedder, entries=_CACHED_VECTORS), profile)
    stack.push_async_callback(embedder.close)
    longterm = settings.longterm
    spec = VectorSpec(models.embedder.model, models.embedder.dimensions, longterm.vector_algorithm, longterm.vector_type, profile.digest)
    return settings, models, embedder, spec


def _model_switch(settings: Settings, opened: Sequence[Runtime], stack: AsyncExitStack) -> ModelSwitch[Runtime]:
    async def open_model(choice: EmbeddingChoice) -> Sequence[Runtime]:
        own, models, embedder, spec = await _open_embedder(choice.applied(settings), stack)
        home = opened[0]
        embedder.keep_mean_in(EmbeddingMeans(home.client, home.keys, spec))
        parts: list[Runtime] = []
        for bucket in opened:
            schemas = _schemas(bucket.keys, spec)
            for schema in schemas.values():
                # Writes continue: no search needs this index's word statistics until all vectors are there.
                await ensure_index(bucket.client, bucket.keys, schema, hold=False)
            base = Foundation(**{part.name: getattr(bucket, part.name) for part in fields(Foundation)})
            described = models.description
            parts.append(
                _open_features(replace(base, settings=own, spec=spec, schemas=schemas, embedder=embedder, models_description=described))
            )
        return parts

    def expect(bucket: int, parts: Sequence[Runtime]) -> None:
        schemas = {schema.index.name: schema for part in parts for schema in part.schemas.values()}
        opened[bucket].watch.expect(tuple(schemas.values()))

    stores = [ReembedStore(bucket.client, bucket.keys) for bucket in opened]
    return ModelSwitch(stores, EmbeddingChoice.of(settings.models), opened, open_model, expect)


async def choose_model(settings: Settings, redis_url: str) -> tuple[Settings, str]:
    """Return settings with the store's embedding model, and a hint if another one is configured.

    A model chosen by `reembed` takes precedence. If LOCAL_MODEL is not set, the store's local model
    is used. Raises StartupError or RedisUnavailable.
    """
    models, home = settings.models, Keys(settings.redis.key_prefix)
    async with bucket_clients(redis_url, [home], command_timeout=settings.redis.command_timeout_seconds) as ((_, client),):
        ((stored_model, replacement),) = await read(client, lambda pipe: pipe.hmget(home.config, ["model", "choice"]))
    configured = EmbeddingChoice.of(models)
    if (successor := configured.successor(replacement)) is not None:
        is_ignored = successor != configured and configured.is_set(models)
        hint = f"reembed replaced {configured.model}; to change the model, run `agent-memory reembed {configured.model}`"
        return successor.applied(settings), hint if is_ignored else ""
    if models.use_openai_embeddings or "local_model" in models.model_fields_set:
        return settings, ""
    model = models.local_model if stored_model is None else stored_model.decode()
    if model == models.local_model or model not in PACKAGES:
        return settings, ""
    hint = f"set LOCAL_MODEL={models.local_model} to change it and embed all memories again"
    return settings.model_copy(update={"models": models.model_copy(update={"local_model": model})}), hint


def _open_features(foundation: Foundation) -> Runtime:
    services = Services()
    for feature in FEATURES:
        services.open(feature, foundation)
    services[RecallService].add_sections(services.sections)
    parts = {part.name: getattr(foundation, part.name) for part in fields(Foundation)}
    return Runtime(**parts, own=services)
