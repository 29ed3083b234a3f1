"""Opens Redis, the indexes, the models and the services once, hands them down, and closes them in reverse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redis.asyncio import Redis

from agent_memory.errors import RedisUnavailable
from agent_memory.llm.base import ChatModel, Embedder
from agent_memory.llm.cached import CachingEmbedder
from agent_memory.llm.counting import TokenCounter
from agent_memory.llm.providers import Models, open_models
from agent_memory.services.access import scope_of_work
from agent_memory.services.compaction import CompactionService
from agent_memory.services.context_limits import ContextLimits
from agent_memory.services.credentials import Gate, jwt_gate
from agent_memory.services.embedding_budget import EmbeddingBudget
from agent_memory.services.explain import ExplainService
from agent_memory.services.exporting import ExportService, Sources
from agent_memory.services.extraction_rules import ExtractionRulesService
from agent_memory.services.forgetting import ForgettingService
from agent_memory.services.history import HistoryService
from agent_memory.services.idempotency import IdempotencyService
from agent_memory.services.importing import ImportService, Targets
from agent_memory.services.limits import MemoryLimit, ModelBudget, RequestLimit
from agent_memory.services.longterm import LongTermService
from agent_memory.services.operations import OperationService
from agent_memory.services.ordering import Ordering
from agent_memory.services.purging import PurgeService
from agent_memory.services.quarantine import QuarantineService
from agent_memory.services.queries import QueryReader
from agent_memory.services.query_vectors import QueryVectors
from agent_memory.services.recall import RecallService
from agent_memory.services.rewriting import Rewriter
from agent_memory.services.search import SearchService
from agent_memory.services.tokens import TokenGate, TokenService
from agent_memory.services.usage import UsageLog
from agent_memory.services.view_summaries import ViewSummarizer
from agent_memory.services.views import ViewService
from agent_memory.services.working import WorkingMemoryService
from agent_memory.settings import Settings
from agent_memory.storage.cards import CardReader
from agent_memory.storage.carrier import CarrierGuard
from agent_memory.storage.change_dossiers import ChangeDossiers
from agent_memory.storage.changes import ChangeStore
from agent_memory.storage.cluster import Bucket, Place, ensure_buckets, find_places, following
from agent_memory.storage.connection import Reader, SearchReader, answers_in_lists, check_engine, fsync_always, redis_errors, shown_url
from agent_memory.storage.context_limits import ContextLimitStore
from agent_memory.storage.decisions import DecisionStore
from agent_memory.storage.dossiers import DossierReader
from agent_memory.storage.erasure import ErasureStore
from agent_memory.storage.exports import ExportStore
from agent_memory.storage.idempotency import IdempotencyStore
from agent_memory.storage.identities import IdentityRepair
from agent_memory.storage.indexes import (
    VectorSpec,
    change_schema,
    ensure_index,
    history_schema,
    memory_schema,
    note_built,
    session_schema,
    vector_schema,
)
from agent_memory.storage.keyed_ids import KeyedIds
from agent_memory.storage.keys import Keys, bucket_of
from agent_memory.storage.limits import LimitStore
from agent_memory.storage.lineage import LineageStore
from agent_memory.storage.lua import Scripts
from agent_memory.storage.memories import MemoryStore
from agent_memory.storage.merging import MergeStore
from agent_memory.storage.neighbours import NeighbourStore
from agent_memory.storage.operations import OperationStore
from agent_memory.storage.orders import OrderStore
from agent_memory.storage.outbox import Backlog, Outbox, summed
from agent_memory.storage.quarantine import QuarantineStore
from agent_memory.storage.query_vectors import QueryVectorStore
from agent_memory.storage.recent import RecentMessages
from agent_memory.storage.reindex import Reindexer
from agent_memory.storage.restoring import Restorer
from agent_memory.storage.rules import RuleStore
from agent_memory.storage.session_dossiers import SessionDossierReader
from agent_memory.storage.store_marker import StoreFile
from agent_memory.storage.survey import Selection, Survey
from agent_memory.storage.timetable import Timetable
from agent_memory.storage.tokens import TokenStore
from agent_memory.storage.traces import TraceStore
from agent_memory.storage.usage import UsageStore
from agent_memory.storage.views import ViewStore
from agent_memory.storage.watch import Problem, StoreWatch
from agent_memory.storage.working import SessionStore
from agent_memory.tasks import DueKind

if TYPE_CHECKING:
    from docket import Docket
    from redisvl.schema import IndexSchema

# About 1.5 kB each at 384 dimensions.
_CACHED_VECTORS = 20_000


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether requests can be served, what was looked at, and what is wrong."""

    ok: bool
    checks: dict[str, Any]
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Runtime:
    """Everything that a process opened for one bucket of the store; that of the first bucket, `home`, has the others.

    Credentials, and how often a tenant may ask, are asked of `home`; all else of the bucket of the tenant (`of`).
    """

    settings: Settings
    keys: Keys
    place: Place
    watch: StoreWatch
    redis_description: str
    models_description: str
    client: Redis
    outbox: Outbox
    sessions: SessionStore
    memories: MemoryStore
    ids: KeyedIds
    reindexer: Reindexer
    identities: IdentityRepair
    embedder: Embedder
    chat: ChatModel | None
    counter: TokenCounter
    working: WorkingMemoryService
    longterm: LongTermService
    search: SearchService
    explains: ExplainService
    recall: RecallService
    idempotency: IdempotencyService
    operations: OperationService
    erasures: ErasureStore
    survey: Survey
    merges: MergeStore
    decisions: DecisionStore
    neighbours: NeighbourStore
    changes: ChangeStore
    history: HistoryService
    orders: OrderStore
    timetable: Timetable
    usage: UsageLog
    usage_store: UsageStore
    view_store: ViewStore
    summarizer: ViewSummarizer
    forgetting: ForgettingService
    extraction_rules: ExtractionRulesService
    compaction: CompactionService
    purging: PurgeService
    lineage: LineageStore
    views: ViewService
    carriers: CarrierGuard
    gate: Gate
    traces: TraceStore
    tokens: TokenService
    request_limit: RequestLimit
    memory_limit: MemoryLimit
    budget: ModelBudget
    context_limits: ContextLimits
    embeddings: EmbeddingBudget
    exports: ExportService
    imports: ImportService
    quarantine: QuarantineService
    others: tuple[Runtime, ...] = ()

    @property
    def all(self) -> tuple[Runtime, ...]:
        """Every bucket of the store, this one first."""
        return (self, *self.others)

    def of(self, tenant: str) -> Runtime:
        """What has a tenant's data."""
        return self.all[bucket_of(tenant, len(self.others) + 1)] if self.others else self

    @property
    def redis_url(self) -> str:
        """Where this bucket is now."""
        return self.place.url

    @property
    def extracts(self) -> bool:
        """Whether a model is asked for facts."""
        longterm = self.settings.longterm
        return longterm.enabled and longterm.extract_facts and self.chat is not None

    @property
    def promotes(self) -> bool:
        """Whether messages become long-term memories."""
        return self.settings.longterm.enabled and self.settings.longterm.promote_messages

    def chat_of(self, tenant: str) -> ChatModel | None:
        """The language model as a tenant may use it, None without one."""
        return self.budget.of(self.chat, tenant)

    def embedder_of(self, tenant: str) -> Embedder:
        """The embedder as a tenant may use it."""
        return self.embeddings.of(tenant) if self.embeddings.limits(tenant) else self.embedder

    def docket(self) -> Docket:
        """A docket of this bucket, to be entered by the worker. Its pool must be larger than its worker's concurrency."""
        # Only workers ask for one; an API would wait a third of a second at its start for what it never uses.
        from docket import Docket  # noqa: PLC0415

        alone = self.settings.redis.buckets == 1 and not self.place.clustered
        # On a cluster its keys must share a slot, and each bucket has its own.
        name = f"{self.keys.prefix}:" if alone else self.keys.root
        joint = "&" if "?" in self.redis_url else "?"
        url = f"{self.redis_url}{joint}max_connections={self.settings.worker.concurrency + 64}"
        return Docket(name=name + self.settings.worker.docket_name, url=url)

    async def queued(self, docket: Docket) -> int:
        """How many tasks wait in a docket or run."""
        with redis_errors():
            return int(await self.client.xlen(docket.stream_key))

    async def ready(self) -> Readiness:
        """What the watch last saw, at most a second ago, and what is pending; not ready while anything is wrong with `home`.

        With several buckets it is `home` that counts: whose tenants' bucket is away get 503, and all others are served.
        """
        looks = await asyncio.gather(*(one.watch.look() for one in self.all))
        asked = await asyncio.gather(*(one.outbox.backlog() for one in self.all), return_exceptions=True)
        checks: dict[str, Any] = {"redis": "ok", "models": self.models_description}
        if self.chat is not None:
            limit = self.chat.context.limit
            checks["context"] = {"tokens": limit.tokens, "source": limit.source}
        away: dict[str, tuple[Problem, ...]] = {}
        found: list[dict[DueKind, Backlog]] = []
        for one, problems, answer in zip(self.all, looks, asked, strict=True):
            if isinstance(answer, RedisUnavailable):
                away[str(one.keys.bucket)] = problems or (Problem(answer.code, answer.message),)
                continue
            if isinstance(answer, BaseException):
                raise answer
            found.append(answer)
            if problems:
                away[str(one.keys.bucket)] = problems
        if found:
            # What recurs is never done: only the rest is work that waits.
            checks["work"] = {
                kind.value: {"pending": b.pending, "dead": b.dead, "oldest_seconds": round(b.oldest_seconds, 3)}
                for kind, b in summed(found).items()
                if kind is not DueKind.PERIODIC
            }
        problems = away.pop("0", ())
        if problems:
            checks["redis"] = problems[0].message
        if away:
            checks["buckets_away"] = {bucket: wrong[0].message for bucket, wrong in away.items()}
        return Readiness(not problems, checks, problems)

    async def backlog(self) -> dict[DueKind, Backlog]:
        """What is due in all buckets together. Raises RedisUnavailable."""
        return summed([await one.outbox.backlog() for one in self.all])


@asynccontextmanager
async def open_runtime(settings: Settings, redis_url: str, *, data_dir: Path | None = None, begin: bool = True) -> AsyncGenerator[Runtime]:
    """Opens everything: the runtime of the first bucket, which has those of the others.

    `data_dir` is where an embedded Redis keeps its data: beside them stands which store it is. A store that is not there yet is begun,
    unless `begin` is false: then nothing can be found in it.

    Raises StartupError in one line when Redis or the models cannot be used.
    """
    options = settings.redis
    timeout = options.command_timeout_seconds
    buckets = [Keys(options.key_prefix, number) for number in range(options.buckets)]
    async with AsyncExitStack() as stack:
        places = await find_places(redis_url, buckets, shown=shown_url(redis_url), command_timeout=timeout)
        models = await open_models(settings)
        stack.push_async_callback(models.close)
        cache = CachingEmbedder(models.embedder, entries=_CACHED_VECTORS)
        shared = replace(models, embedder=cache)
        longterm = settings.longterm
        spec = VectorSpec(models.embedder.model, models.embedder.dimensions, longterm.vector_algorithm, longterm.vector_type)
        # The first says whether the number of buckets is right, before anything is made.
        file = None if data_dir is None else StoreFile(data_dir)
        home, *others = [
            await stack.enter_async_context(_opened(settings, place, keys, shared, cache, spec, file, begin=begin))
            for place, keys in zip(places, buckets, strict=True)
        ]
        if home.place.clustered:
            movable = [Bucket(keys, place, partial(_prepare, settings, keys, spec)) for keys, place in zip(buckets, places, strict=True)]
            await stack.enter_async_context(following(movable, command_timeout=timeout))
        yield replace(home, others=tuple(others)) if others else home


def _schemas(keys: Keys, spec: VectorSpec) -> tuple[IndexSchema, ...]:
    """The indexes of a bucket."""
    return (session_schema(keys), memory_schema(keys), vector_schema(keys, spec), history_schema(keys, spec), change_schema(keys))


async def _check(settings: Settings, keys: Keys, client: Redis, url: str) -> str:
    """Sets what a bucket needs of its Redis; returns the version of Redis. Raises StartupError."""
    shown = shown_url(url)
    version = await check_engine(client, shown)
    if keys.bucket == 0:
        await ensure_buckets(client, keys, settings.redis.buckets)
    if settings.redis.durability == "strict":
        await fsync_always(client, shown)
    return version


async def _prepare(settings: Settings, keys: Keys, spec: VectorSpec, client: Redis, url: str) -> None:
    """Makes what a bucket needs of its Redis, options and indexes. Raises StartupError."""
    await _check(settings, keys, client, url)
    await _index(keys, spec, client)


async def _index(keys: Keys, spec: VectorSpec, client: Redis) -> None:
    for schema in _schemas(keys, spec):
        await ensure_index(client, keys, schema)
    await note_built(client, keys)


@asynccontextmanager
async def _opened(
    settings: Settings,
    place: Place,
    keys: Keys,
    models: Models,
    cache: CachingEmbedder,
    spec: VectorSpec,
    file: StoreFile | None,
    *,
    begin: bool,
) -> AsyncGenerator[Runtime]:
    """One bucket. `cache` is the embedder of `models`."""
    async with AsyncExitStack() as stack:
        timeout = settings.redis.command_timeout_seconds
        # Of the watch, which must see what nobody else may use, and prepares it.
        plain = place.connect(pool_size=4, command_timeout=timeout)
        stack.push_async_callback(plain.aclose)
        version = await (_check(settings, keys, plain, place.url) if begin else check_engine(plain, shown_url(place.url)))
        watch = StoreWatch(plain, keys, file, schemas=_schemas(keys, spec) if begin else (), makes=begin)
        await watch.open()
        if watch.intact and begin:
            await _index(keys, spec, plain)
        watch.on_renewal(place.renew)
        await stack.enter_async_context(watch.running())
        connecting = partial(place.connect, pool_size=settings.redis.pool_size, command_timeout=timeout, gate=watch)
        client = connecting()
        stack.push_async_callback(client.aclose)
        embedder, longterm = models.embedder, settings.longterm
        neighbours_ms = round(longterm.neighbours_after_seconds * 1000)
        scripts = Scripts(client, fsync=settings.redis.durability == "strict", neighbours_ms=neighbours_ms)
        outbox = Outbox(client, keys, scripts)
        sessions = SessionStore(client, keys, scripts)
        memories = MemoryStore(client, keys, scripts, spec)
        decisions = DecisionStore(keys, scripts)
        changes = ChangeStore(client, keys, scripts)
        exports = ExportStore(client, keys)
        operations = OperationService(OperationStore(client, keys), sessions, exports)
        erasures = ErasureStore(client, keys)
        survey = Survey(client, keys, spec)
        orders = OrderStore(client, keys)
        view_store = ViewStore(client, keys)
        limit_store = LimitStore(client, keys)
        budget = ModelBudget(settings.limits, limit_store)
        context_limits = ContextLimits(ContextLimitStore(client, keys))
        embeddings = EmbeddingBudget(settings.limits, limit_store, embedder, paid=settings.models.use_openai_embeddings)
        stack.push_async_callback(embeddings.close)
        memory_limit = MemoryLimit(settings.limits, lambda tenant: survey.count(scope_of_work(tenant), Selection()))
        chat_of = partial(budget.of, models.chat)
        summarizer = ViewSummarizer(survey, chat_of, models.counter)
        token_store = TokenStore(client, keys)
        token_gate = TokenGate(settings.auth, token_store)
        watch.on_renewal(token_gate.renew)
        gate = jwt_gate(settings.auth) if settings.auth.mode == "oauth2" else token_gate
        dossiers = DossierReader(client, keys, spec)
        restorer = Restorer(client, keys, scripts, spec, fsync=settings.redis.durability == "strict")
        change_dossiers = ChangeDossiers(client, keys, changes, dossiers, restorer)
        rules = RuleStore(client, keys)
        sources = Sources(dossiers, change_dossiers, SessionDossierReader(client, keys, sessions), rules, view_store, spec)
        ids = KeyedIds()
        if watch.intact and begin:
            await ids.load(plain, keys)
        watch.on_renewal(partial(ids.load, plain, keys))
        targets = Targets(restorer, decisions, memories, dossiers, change_dossiers, sessions, rules, view_store, models.counter, ids)
        extracts = longterm.enabled and longterm.extract_facts and models.chat is not None
        working = WorkingMemoryService(settings, sessions, models.counter, memory_limit, ids, extracts=extracts)
        usage = UsageLog(usage_store := UsageStore(client, keys))
        stack.push_async_callback(usage.close)
        neighbours = NeighbourStore(client, keys, memories)
        long_term = LongTermService(settings, memories, neighbours, decisions, erasures, usage, memory_limit)
        lists = connecting(protocol=2) if await answers_in_lists(plain) else None
        if lists is not None:
            stack.push_async_callback(lists.aclose)
        reader = SearchReader(client, lists)
        vector_store = QueryVectorStore(client, keys, spec, seconds=settings.models.embedding_cache_seconds)
        vectors = QueryVectors(vector_store, cache, embeddings.of)
        stack.push_async_callback(vectors.close)
        queries = QueryReader(settings, reader, memories, vectors, Rewriter(settings, chat_of))
        ordering = Ordering(settings, memories, models.reranker)
        search = SearchService(settings, reader, memories, CardReader(client, keys), queries, ordering, usage)
        recall = RecallService(settings, reader, sessions, search, long_term, models.counter, RecentMessages(keys))
        yield Runtime(
            settings=settings,
            keys=keys,
            place=place,
            watch=watch,
            redis_description=f"Redis {version} at {shown_url(place.url)}" + place.remark(settings.redis.buckets),
            models_description=models.description,
            client=client,
            outbox=outbox,
            sessions=sessions,
            memories=memories,
            ids=ids,
            reindexer=Reindexer(client, keys, outbox, spec),
            identities=IdentityRepair(client, keys, fsync=settings.redis.durability == "strict"),
            embedder=embedder,
            chat=models.chat,
            counter=models.counter,
            working=working,
            longterm=long_term,
            search=search,
            explains=ExplainService(search, recall, memories, Reader(client)),
            recall=recall,
            idempotency=IdempotencyService(IdempotencyStore(client, keys)),
            operations=operations,
            erasures=erasures,
            survey=survey,
            merges=MergeStore(client, keys, decisions),
            decisions=decisions,
            neighbours=neighbours,
            changes=changes,
            history=HistoryService(memories, changes, decisions),
            orders=orders,
            timetable=Timetable(client, keys),
            usage=usage,
            usage_store=usage_store,
            view_store=view_store,
            summarizer=summarizer,
            extraction_rules=ExtractionRulesService(rules),
            forgetting=ForgettingService(survey, decisions),
            compaction=CompactionService(orders, survey),
            purging=PurgeService(orders),
            lineage=LineageStore(client, keys, scripts, spec),
            views=ViewService(settings, view_store, orders, summarizer),
            carriers=CarrierGuard(client, keys),
            gate=gate,
            traces=TraceStore(client, keys, memories, scripts, spec),
            tokens=TokenService(token_store, token_gate),
            request_limit=RequestLimit(settings.limits, limit_store),
            memory_limit=memory_limit,
            budget=budget,
            context_limits=context_limits,
            embeddings=embeddings,
            exports=ExportService(sources, exports, audits=settings.server.audit_log),
            quarantine=QuarantineService(QuarantineStore(client, keys, spec), memories),
            imports=ImportService(settings, targets, memory_limit, extracts=extracts),
        )
