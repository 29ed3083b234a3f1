"""What a tenant may use: requests per minute, stored memories, and a language model's tokens per day.

Requests are counted in a token bucket in Redis, out of which a process takes a few at a time: most requests cost a look at a dictionary,
and all processes together keep to the rate. What a process took and did not use within a second is gone; it is a tenth of a second's
worth, or one. What Redis refused, the process refuses for itself until the bucket has something again.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic

from agent_memory.features.access.limit_store import LimitStore
from agent_memory.foundation.core.errors import BudgetSpent, RedisUnavailable, TooMany
from agent_memory.foundation.core.metrics import LIMITED
from agent_memory.foundation.core.settings import LimitSettings
from agent_memory.foundation.llm.base import Answer, ChatMessage, ChatModel
from agent_memory.foundation.llm.token_usage import metering
from agent_memory.foundation.llm.wrappers.base import ChatWrapper

log = logging.getLogger(__name__)

_LEASE_SECONDS = 1.0
_LEASE_SHARE = 0.1
# So long a process refuses without asking anew: a limit that was raised, or a bucket that was filled, is seen after that.
_VERDICT_SECONDS = 1.0
# So many refusals in a second, and who sends on does not read them.
_DEAF = 20
# A count of memories is good for so long, near the limit for less.
_COUNT_SECONDS = 10.0
_NEAR_SECONDS = 1.0
_NEAR = 0.9
# When memories will have been deleted, nobody knows.
_FULL_RETRY_SECONDS = 60
_MOST_TENANTS = 10_000


@dataclass(slots=True)
class _Lease:
    """What this process knows of a tenant's bucket. Times are those of its clock.

    It may let in requests worth `left` until `until`; those worth `closed_cost` or more are refused until `closed_until` without a
    look at Redis, which will have enough for them at `opens_at`.
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
    """The rate of a tenant's requests, over all processes. A request may cost as much as several; at most the whole bucket."""

    def __init__(self, settings: LimitSettings, store: LimitStore, clock: Callable[[], float] = monotonic) -> None:
        self._settings = settings
        self._others = settings.for_tenant("")
        self._store = store
        self._clock = clock
        self._leases: dict[str, _Lease] = {}

    def waiting(self, tenant: str) -> int:
        """How many requests, by what they cost, wait for Redis to tell whether a tenant may make them."""
        lease = self._leases.get(tenant)
        return 0 if lease is None else lease.waiting

    def is_hammered(self, tenant: str) -> bool:
        """Whether a tenant was refused so often within a second that it does not listen to what refusals say."""
        lease = self._leases.get(tenant)
        return lease is not None and lease.refused > _DEAF

    async def admit(self, tenant: str, cost: int = 1) -> None:
        """Counts one request, worth `cost`. Raises TooMany when the tenant has no more of them now, RedisUnavailable."""
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
        wanted = max(lease.waiting - have, min(int(per_minute / 60 * _LEASE_SHARE), burst // 10), least)
        taken, wait = await self._store.take(tenant, per_minute=per_minute, burst=burst, wanted=wanted, least=least)
        if taken:
            lease.left, lease.until = have + taken, begun + _LEASE_SECONDS
            return
        now = self._clock()
        lease.closed_cost, lease.opens_at, lease.closed_until = cost, now + wait, now + min(wait, _VERDICT_SECONDS)
        raise too_many(self._refused(lease, now))

    def _refuse_while_closed(self, lease: _Lease, cost: int) -> None:
        now = self._clock()
        if now < lease.closed_until and cost >= lease.closed_cost:
            raise too_many(self._refused(lease, now))

    def _refused(self, lease: _Lease, now: float) -> int:
        """Notes a refusal; returns the whole seconds to wait."""
        LIMITED.labels("requests").inc()
        if now - lease.refused_since >= 1.0:
            lease.refused, lease.refused_since = 0, now
        lease.refused += 1
        return max(math.ceil(lease.opens_at - now), 1)


def too_many(retry_after: int) -> TooMany:
    """The refusal of a request beyond its tenant's rate."""
    message = "this tenant has made its requests for now (LIMIT_REQUESTS_PER_MINUTE): wait as long as Retry-After says"
    return TooMany(message, retry_after=retry_after, limit="requests")


class MemoryLimit:
    """How many memories a tenant keeps.

    Every process counts for itself, so several together may pass the limit by what they write in a second, and by messages that wait.
    """

    def __init__(self, settings: LimitSettings, count: Callable[[str], Awaitable[int]], clock: Callable[[], float] = monotonic) -> None:
        self._settings = settings
        self._count = count
        self._clock = clock
        self._counts: dict[str, _Count] = {}
        self._any = settings.limits_any("memories")

    async def room_for(self, tenant: str, number: int) -> None:
        """Raises TooMany when `number` memories more are too many."""
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
            message = f"this tenant keeps {most} memories at most (LIMIT_MEMORIES): delete or forget some first"
            raise TooMany(message, retry_after=_FULL_RETRY_SECONDS, limit="memories")
        count.memories += number


class ModelBudget:
    """The language model's tokens of a tenant's day."""

    def __init__(self, settings: LimitSettings, store: LimitStore) -> None:
        self._settings = settings
        self._store = store

    def metered_chat(self, chat: ChatModel | None, tenant: str) -> ChatModel | None:
        """The model as this tenant may use it: itself when the tenant has no limit."""
        most = self._settings.for_tenant(tenant).model_tokens_per_day
        return MeteredChat(chat, self, tenant) if chat is not None and most else chat

    async def check(self, tenant: str) -> None:
        """Raises BudgetSpent when nothing is left of today's tokens."""
        most = self._settings.for_tenant(tenant).model_tokens_per_day or 0
        spent = await self._store.spend(tenant, 0)
        if spent.tokens >= most:
            LIMITED.labels("model_tokens").inc()
            message = f"the tenant's {most} model tokens of today (UTC) are spent (LIMIT_MODEL_TOKENS_PER_DAY): it goes on tomorrow"
            raise BudgetSpent(message, retry_after=max(math.ceil(spent.seconds_left), 1), limit="model_tokens")

    async def spend(self, tenant: str, tokens: int) -> None:
        """Counts tokens that were used. What cannot be counted is not worth the answer that was paid for."""
        try:
            await self._store.spend(tenant, tokens)
        except RedisUnavailable as error:
            log.warning("%d model tokens of a tenant are not counted: %s", tokens, error)


class MeteredChat(ChatWrapper):
    """A ChatModel on a tenant's budget: asked for nothing more when it is spent. The call that spends the last of it is finished."""

    def __init__(self, inner: ChatModel, budget: ModelBudget, tenant: str) -> None:
        super().__init__(inner)
        self._budget = budget
        self._tenant = tenant

    def with_model(self, model: str) -> MeteredChat:
        """See ChatModel.named; on the same budget."""
        return MeteredChat(self._inner.with_model(model), self._budget, self._tenant)

    async def text(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, timeout: float | None = None) -> str:
        """See ChatModel.text. Raises BudgetSpent."""
        await self._budget.check(self._tenant)
        with metering() as used:
            try:
                return await self._inner.text(messages, max_tokens=max_tokens, timeout=timeout)
            finally:
                await self._budget.spend(self._tenant, used.tokens)

    async def structured(
        self, messages: Sequence[ChatMessage], answer: type[Answer], *, max_tokens: int | None = None, timeout: float | None = None
    ) -> Answer:
        """See ChatModel.structured. Raises BudgetSpent."""
        await self._budget.check(self._tenant)
        with metering() as used:
            try:
                return await self._inner.structured(messages, answer, max_tokens=max_tokens, timeout=timeout)
            finally:
                await self._budget.spend(self._tenant, used.tokens)
