"""Limit each tenant's requests per minute, memories, and language model tokens per day."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic

from redis.asyncio import Redis

from agent_memory.foundation.core.errors import BudgetSpent, RedisUnavailable, TooMany
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.metrics import LIMITED
from agent_memory.foundation.core.settings import LimitSettings
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Script

log = get_logger(__name__)

_LEASE_SECONDS = 1.0
_LEASE_SHARE = 0.1
# A process asks Redis again after this time, so it notices a raised limit or a refilled bucket.
_VERDICT_SECONDS = 1.0
_DEAF = 20
# How long to cache counts of memories. The time is shorter near the limit.
_COUNT_SECONDS = 10.0
_NEAR_SECONDS = 1.0
_NEAR = 0.9
_FULL_RETRY_SECONDS = 60
_MOST_TENANTS = 10_000


@dataclass(slots=True)
class _Lease:
    """A process's share of a tenant's token bucket. All times use the monotonic clock.

    Before `until`, the process may admit requests costing `left` in total. Until `closed_until`, it rejects requests
    that cost `closed_cost` or more.
    """

    left: int = 0
    until: float = 0.0
    closed_cost: int = 1
    closed_until: float = 0.0
    opens_at: float = 0.0
    waiting: int = 0
    refused: int = 0
    refused_since: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class _Count:
    memories: int
    at: float


class RequestLimit:
    """Limits a tenant's request rate across all processes. A request may cost several tokens."""

    def __init__(self, settings: LimitSettings, store: LimitStore, clock: Callable[[], float] = monotonic) -> None:
        self._settings = settings
        self._others = settings.for_tenant("")
        self._store = store
        self._clock = clock
        self._leases: dict[str, _Lease] = {}

    def waiting(self, tenant: str) -> int:
        """Return the total cost of the tenant's requests waiting for Redis."""
        lease = self._leases.get(tenant)
        return 0 if lease is None else lease.waiting

    def is_hammered(self, tenant: str) -> bool:
        """True if more than 20 of the tenant's requests were refused within a second."""
        lease = self._leases.get(tenant)
        return lease is not None and lease.refused > _DEAF

    async def admit(self, tenant: str, cost: int = 1) -> None:
        """Count a request with the given cost. Raises TooMany and RedisUnavailable."""
        lease = self._leases.get(tenant)
        if lease is not None and lease.left >= cost and self._clock() < lease.until:
            lease.left -= cost
            return
        own = self._settings.for_tenant(tenant) if tenant in self._settings.tenants else self._others
        if not own.requests_per_minute:
            return
        burst = own.requests_burst or 1
        cost = min(cost, burst)
        if lease is None:
            if len(self._leases) >= _MOST_TENANTS:
                self._leases.clear()
            lease = self._leases[tenant] = _Lease()
        self._refuse_while_closed(lease, cost)
        lease.waiting += cost
        try:
            async with lease.lock:
                self._refuse_while_closed(lease, cost)
                if not (lease.left >= cost and self._clock() < lease.until):
                    await self._renew(tenant, lease, own.requests_per_minute, burst, cost)
                lease.left -= cost
        finally:
            lease.waiting -= cost

    async def _renew(self, tenant: str, lease: _Lease, per_minute: int, burst: int, cost: int) -> None:
        begun = self._clock()
        have = lease.left if begun < lease.until else 0
        least = cost - have
        request_count = max(lease.waiting - have, min(int(per_minute / 60 * _LEASE_SHARE), burst // 10), least)
        granted, wait = await self._store.take(tenant, per_minute=per_minute, burst=burst, most=request_count, least=least)
        if granted:
            lease.left, lease.until = have + granted, begun + _LEASE_SECONDS
            return
        now = self._clock()
        lease.closed_cost, lease.opens_at, lease.closed_until = cost, now + wait, now + min(wait, _VERDICT_SECONDS)
        raise too_many(self._refused(lease, now))

    def _refuse_while_closed(self, lease: _Lease, cost: int) -> None:
        now = self._clock()
        if now < lease.closed_until and cost >= lease.closed_cost:
            raise too_many(self._refused(lease, now))

    def _refused(self, lease: _Lease, now: float) -> int:
        LIMITED.labels("requests").inc()
        if now - lease.refused_since >= 1.0:
            lease.refused, lease.refused_since = 0, now
        lease.refused += 1
        return max(math.ceil(lease.opens_at - now), 1)


def too_many(retry_after: int) -> TooMany:
    message = "this tenant has reached its limit of requests (LIMIT_REQUESTS_PER_MINUTE): wait for the seconds in Retry-After"
    return TooMany(message, retry_after=retry_after, limit="requests")


class MemoryLimit:
    """Limits how many memories a tenant may store. The cached count may be a few seconds old."""

    def __init__(self, settings: LimitSettings, count: Callable[[str], Awaitable[int]], clock: Callable[[], float] = monotonic) -> None:
        self._settings = settings
        self._count = count
        self._clock = clock
        self._counts: dict[str, _Count] = {}
        self._any = settings.limits_any("memories")

    async def room_for(self, tenant: str, number: int) -> None:
        """Raise TooMany if `number` more memories would exceed the limit."""
        if not (self._any and number):
            return
        most = self._settings.for_tenant(tenant).memories
        if not most:
            return
        count = self._counts.get(tenant)
        near = count is not None and count.memories + number > most * _NEAR
        if count is None or self._clock() - count.at > (_NEAR_SECONDS if near else _COUNT_SECONDS):
            if len(self._counts) >= _MOST_TENANTS:
                self._counts.clear()
            begun = self._clock()
            count = self._counts[tenant] = _Count(await self._count(tenant), begun)
        if count.memories + number > most:
            LIMITED.labels("memories").inc()
            message = f"this tenant can have at most {most} memories (LIMIT_MEMORIES): delete or forget some first"
            raise TooMany(message, retry_after=_FULL_RETRY_SECONDS, limit="memories")
        count.memories += number


_DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class TokensSpent:
    tokens: int
    seconds_left: float


class LimitStore:
    """Counts each tenant's requests and model tokens in Redis."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._keys = keys
        self._take = Script(client, "access/requests_take")
        self._spend = Script(client, "access/model_tokens_spend")

    async def take(self, tenant: str, *, per_minute: int, burst: int, most: int, least: int = 1) -> tuple[int, float]:
        """Take up to `most` tokens from the bucket, or none if fewer than `least` remain.

        `least` must not exceed `burst`. Return the number of tokens taken and, if it is 0, the seconds to wait.
        """
        rate = repr(per_minute / 60_000)
        granted, wait = await self._take(bucket=self._keys.rate(tenant), rate=rate, most=burst, requested=most, least=least)
        return int(granted), int(wait) / 1000

    async def spend(self, tenant: str, tokens: int) -> TokensSpent:
        """Add model tokens to the tenant's usage for today, and return today's total."""
        spent, left = await self._spend(spent=self._keys.spent(tenant), day_ms=_DAY_MS, tokens=tokens)
        return TokensSpent(int(spent), int(left) / 1000)


class TokenBudget:
    """A tenant's daily limit of `most` model tokens. A call that exceeds it still finishes."""

    def __init__(self, store: LimitStore, tenant: str, most: int) -> None:
        self._store = store
        self._tenant = tenant
        self._most = most

    async def check(self) -> None:
        """Raise BudgetSpent if the tenant has used up today's tokens.

        May also raise RedisUnavailable.
        """
        spent = await self._store.spend(self._tenant, 0)
        if spent.tokens >= self._most:
            LIMITED.labels("model_tokens").inc()
            message = f"the tenant has used up today's {self._most} model tokens (UTC, LIMIT_MODEL_TOKENS_PER_DAY): try again tomorrow"
            raise BudgetSpent(message, retry_after=max(math.ceil(spent.seconds_left), 1), limit="model_tokens")

    async def charge(self, tokens: int) -> None:
        try:
            await self._store.spend(self._tenant, tokens)
        except RedisUnavailable as error:  # the model's answer has already been paid for
            log.warning("model tokens not counted", tenant=self._tenant, tokens=tokens, error=error)
