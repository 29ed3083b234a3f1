"""Watch a bucket's Redis server, and rebuild missing indexes.

If the store is lost, all Redis commands in the process are blocked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from secrets import token_hex
from time import monotonic

from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError
from redisvl.schema import IndexSchema

from agent_memory.foundation.core.errors import AgentMemoryError, RedisUnavailable, StartupError, StoreChanged, StoreLost
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.storage.cluster import bucket_clients, end_task, ensure_buckets
from agent_memory.foundation.storage.connection import connect, translate_error
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Script
from agent_memory.foundation.storage.search.indexes import ensure_index, has_index, note_built, rebuilt_name
from agent_memory.foundation.storage.store_marker import StoreFile, StoreState, see

log = get_logger(__name__)

ACCEPT = "agent-memory accept-store"
_LOOK_SECONDS = 1.0
# Only a write reveals a full disk, so the watch writes a few bytes this often.
_TOUCH_SECONDS = 10.0
_REMIND_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Problem:
    """A reason that the server cannot serve requests. Programs can rely on `code`."""

    code: str
    message: str


class StoreWatch:
    """Watches a bucket, and is the `StoreGate` for its clients.

    `client` must not have a gate.
    """

    def __init__(
        self, client: Redis, keys: Keys, file: StoreFile | None, *, schemas: Sequence[IndexSchema] = (), makes: bool = True
    ) -> None:
        """Watch the store under `keys`. With `makes`, mark an empty Redis as a store."""
        self._client = client
        self._keys = keys
        self._file = file
        self._schemas = schemas
        self._makes = makes
        self._expected: str | None = None
        self._refusal: RedisUnavailable | None = None
        self._problems: tuple[Problem, ...] = ()
        self._buckets: str | None = None
        self._seen_at = 0  # when Redis last contained the known store (ms, from the Redis clock)
        self._looked = -_LOOK_SECONDS
        self._touched = monotonic()
        self._logged: tuple[frozenset[str], float] = (frozenset(), 0.0)
        self._looking = asyncio.Lock()
        self._mending: asyncio.Task[None] | None = None
        self._on_renewal: list[Callable[[], Awaitable[object] | None]] = []

    # ------------------------------------------------------------------------------------------------------------- gate

    def check(self) -> None:
        if self._refusal is not None:
            # Each caller gets a new error, because a raised error collects tracebacks.
            raise type(self._refusal)(self._refusal.message, retry_after=self._refusal.retry_after)

    async def check_connection(self, connection: AbstractConnection) -> None:
        """Check that a new connection leads to the known store."""
        await connection.on_connect()
        if self._expected is None:
            return
        await connection.send_command("HGET", self._keys.config, "store", check_health=False)
        if await connection.read_response() != self._expected.encode():
            try:
                await self.look(fresh=True)
                self.check()
            except AgentMemoryError:
                await connection.disconnect()
                raise

    # ------------------------------------------------------------------------------------------------------------ store

    @property
    def intact(self) -> bool:
        """True if Redis contained the known store at the last check."""
        return self._refusal is None

    def expect(self, schemas: Sequence[IndexSchema]) -> None:
        """Set the indexes to check for."""
        self._schemas = schemas

    def on_renewal(self, call: Callable[[], Awaitable[object] | None]) -> None:
        """Register a function to call before clients are unblocked."""
        self._on_renewal.append(call)

    async def open(self) -> None:
        """Determine which store Redis contains. Raises RedisUnavailable.

        If Redis is empty, mark it as a new store, unless the known store is lost.
        """
        sight = await self._learn(await see(self._client, self._keys))
        self._judge(sight)
        self._tell(self._refusals())

    def await_answer(self, error: RedisUnavailable) -> None:
        """Refuse commands until Redis answers. Call this instead of `open`."""
        self._refusal = error
        self._tell(self._refusals())

    def _refusals(self) -> list[Problem]:
        return [] if self._refusal is None else [Problem(self._refusal.code, self._refusal.message)]

    async def _learn(self, sight: StoreState) -> StoreState:
        noted_id = None if self._file is None else self._file.id_of(self._keys)
        if sight.id is None and sight.lost is None and sight.refusal is None and (self._makes or noted_id is not None):
            await Script(self._client, "storage/marker_open")(config=self._keys.config, new_id=token_hex(8), lost_id=noted_id)
            sight = await see(self._client, self._keys)
        self._seen_at = sight.now
        # Without a file, the store that is in Redis now is the known store.
        self._expected = noted_id or sight.id or sight.lost
        return sight

    async def inspect(self) -> tuple[Problem, ...]:
        """Return any problems without changing Redis or the store. Raises RedisUnavailable."""
        sight = await see(self._client, self._keys)
        noted_id = None if self._file is None else self._file.id_of(self._keys)
        self._expected = noted_id or sight.id or sight.lost
        self._judge(sight)
        return (*self._refusals(), *([] if sight.refusal is None else [_write_refusal(sight.refusal)]))

    async def look(self, *, fresh: bool = False) -> tuple[Problem, ...]:
        """Return any problems. Unless `fresh` is true, they may be up to a second old."""
        started_at = monotonic()
        async with self._looking:
            if self._looked < (started_at if fresh else started_at - _LOOK_SECONDS):
                self._problems = tuple(await self._look())
                self._looked = monotonic()
                self._tell(self._problems)
        return self._problems

    async def _look(self) -> list[Problem]:
        touch = self._expected or "" if monotonic() - self._touched >= _TOUCH_SECONDS else ""
        try:
            sight = await self._see(touch)
            await self._settle(sight)
            missing = [] if self._refusal else await self._missing(sight)
        except (RedisUnavailable, StartupError) as error:
            return [Problem(error.code, error.message)]
        if touch:
            self._touched = monotonic()
        if self._refusal is not None:
            return self._refusals()
        problems = [] if sight.refusal is None else [_write_refusal(sight.refusal)]
        if missing and not problems:
            self._mend(missing)
        text = "the search index {} is missing and is being rebuilt"
        return problems + [Problem("index_missing", text.format(schema.index.name)) for schema in missing]

    async def _see(self, touch: str) -> StoreState:
        try:
            return await see(self._client, self._keys, touch=touch)
        except RedisUnavailable as error:
            if isinstance(error.__cause__, ConnectionError):
                # A connection from before a restart of Redis fails. A new connection shows whether Redis answers.
                return await see(self._client, self._keys, touch=touch)
            raise

    async def _settle(self, sight: StoreState) -> None:
        """Compare Redis with the known store, and switch to a newly accepted one."""
        if self._expected is None:
            sight = await self._learn(sight)
        elif sight.id is not None and sight.id != self._expected and sight.accepted >= self._seen_at:
            log.warning("accepted another store", key_prefix=self._keys.root, store=sight.id, former_store=self._expected)
            self._refusal = self._refusal or StoreChanged("another store was accepted: try again")
            self._expected = sight.id
        if self._refusal is not None and sight.id == self._expected:
            for call in self._on_renewal:
                if (work := call()) is not None:
                    await work
        self._judge(sight)
        if isinstance(self._refusal, StoreLost) and sight.lost is None and self._expected is not None:
            lose = Script(self._client, "storage/marker_lose")
            await lose(config=self._keys.config, store_id=self._expected, buckets=self._buckets)

    def _judge(self, sight: StoreState) -> None:
        if sight.id == self._expected and self._expected is not None:
            self._refusal, self._seen_at, self._buckets = None, sight.now, sight.buckets
            if self._file is not None and self._file.id_of(self._keys) != self._expected:
                self._file.note(self._keys, self._expected)
        elif sight.id is not None:
            self._refusal = StoreChanged(
                f"Redis holds the store {sight.id}, created {_utc_text(sight.made_ms)}, instead of {self._expected}: "
                f"connect to the right Redis, or accept this one with `{ACCEPT}`",
                retry_after=5,
            )
        elif self._expected is not None:
            self._refusal = StoreLost(
                f"Redis is empty, but it contained the store {self._expected}: restore a backup, or accept the loss with `{ACCEPT}`",
                retry_after=5,
            )

    # ---------------------------------------------------------------------------------------------------------- indexes

    async def _missing(self, sight: StoreState) -> list[IndexSchema]:
        missing: list[IndexSchema] = []
        for schema in self._schemas:
            name = schema.index.name
            # FT._LIST shows a rebuilt index under another name.
            built_again = rebuilt_name(self._keys, name) in sight.indexes
            if name not in sight.indexes and not (built_again and await has_index(self._client, name)):
                missing.append(schema)
        return missing

    def _mend(self, missing: Sequence[IndexSchema]) -> None:
        if self._mending is None or self._mending.done():
            self._mending = asyncio.create_task(self._build(missing), name="building-indexes")

    async def _build(self, missing: Sequence[IndexSchema]) -> None:
        try:
            for schema in missing:
                if await ensure_index(self._client, self._keys, schema):
                    log.warning("rebuilt a missing search index", index=schema.index.name)
            await note_built(self._client, self._keys)
        except AgentMemoryError as error:
            log.error("search index missing and not rebuilt; retrying soon", key_prefix=self._keys.root, error=error)
        except Exception:
            log.exception("search index missing and not rebuilt; retrying soon", key_prefix=self._keys.root)

    # ---------------------------------------------------------------------------------------------------------- running

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Check the store once a second inside the `async with` block."""
        task = asyncio.create_task(self._run(), name="store-watch")
        try:
            yield
        finally:
            for each in filter(None, (task, self._mending)):
                await end_task(each)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                await self.look()
            except Exception:
                log.exception("check of Redis failed; continuing", key_prefix=self._keys.root)

    def _tell(self, problems: Sequence[Problem]) -> None:
        """Log when problems start and end. Log ongoing problems again every minute."""
        codes = frozenset(problem.code for problem in problems)
        logged, at = self._logged
        if codes and (codes != logged or monotonic() - at >= _REMIND_SECONDS):
            for problem in problems:
                log.error("not ready", key_prefix=self._keys.root, code=problem.code, error=problem.message)
        elif logged and not codes:
            log.warning("ready again", key_prefix=self._keys.root, codes=sorted(logged))
        else:
            return
        self._logged = codes, monotonic()


_REFUSALS = (
    ("MISCONF", "redis_cannot_persist", "Redis cannot write to its disk and refuses writes"),
    ("OOM", "redis_out_of_memory", "Redis is out of memory and refuses writes"),
    ("READONLY", "redis_read_only", "Redis is a read-only replica and refuses writes"),
    ("NOREPLICAS", "redis_without_replicas", "Redis has too few replicas and refuses writes"),
)


def _write_refusal(error: Exception) -> Problem:
    error_text = str(error)
    by_class = {"OutOfMemoryError": "OOM", "ReadOnlyError": "READONLY"}.get(type(error).__name__, "")
    for word, code, sentence in _REFUSALS:
        if word == by_class or error_text.startswith(word):
            return Problem(code, f"{sentence}: {error_text[:200]}")
    ours = translate_error(error)
    return Problem("redis_refuses_writes", f"Redis refuses writes: {(ours.message if ours else error_text)[:200]}")


def _utc_text(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


@asynccontextmanager
async def watching(url: str, buckets: Sequence[Keys], file: StoreFile, *, command_timeout: float) -> AsyncGenerator[list[StoreWatch]]:
    """Watch the stores in a Redis server, in the process that runs it.

    Never mark an empty Redis as a new store. Write the stores' ids to `file`.
    """
    async with AsyncExitStack() as stack:
        client = connect(url, pool_size=4, command_timeout=command_timeout)
        stack.push_async_callback(client.aclose)
        watches = [StoreWatch(client, keys, file, makes=False) for keys in buckets]
        for watch in watches:
            await watch.open()
            await stack.enter_async_context(watch.running())
        yield watches


async def inspect_stores(url: str, buckets: Sequence[Keys], file: StoreFile | None, *, command_timeout: float) -> list[Problem]:
    """Return any problems with the stores without changing Redis. Raises StartupError."""
    async with bucket_clients(url, buckets, command_timeout=command_timeout) as clients:
        return [problem for keys, client in clients for problem in await StoreWatch(client, keys, file, makes=False).inspect()]


async def accept_store(
    url: str, buckets: Sequence[Keys], file: StoreFile | None, *, command_timeout: float
) -> list[tuple[StoreState, StoreState]]:
    """Accept the contents of Redis as the store. Return each bucket's state before and after.

    Raises StartupError, for example if the number of buckets is wrong.
    """
    states: list[tuple[StoreState, StoreState]] = []
    if file is not None:
        file.require_buckets(buckets)
    async with bucket_clients(url, buckets, command_timeout=command_timeout) as clients:
        await ensure_buckets(clients[0][1], buckets[0], len(buckets))
        for keys, client in clients:
            before = await see(client, keys)
            await Script(client, "storage/marker_accept")(config=keys.config, new_id=token_hex(8))
            now = await see(client, keys)
            if file is not None and now.id is not None:
                file.note(keys, now.id)
            states.append((before, now))
    return states
