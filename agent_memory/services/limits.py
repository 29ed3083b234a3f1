"""What a tenant may use: requests per minute, stored memories, and a language model's tokens per day.

Requests are counted in a token bucket in Redis, out of which a process takes a few at a time: most requests cost a look at a dictionary,
and all processes together keep to the rate. What a process took and did not use within a second is gone; it is a tenth of a second's
worth, or one.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic

from agent_memory.errors import BudgetSpent, RedisUnavailable, TooMany
from agent_memory.llm.around import ChatAround
from agent_memory.llm.base import Answer, ChatMessage, ChatModel
from agent_memory.llm.usage import metering
from agent_memory.metrics import LIMITED
from agent_memory.settings import LimitSettings
from agent_memory.storage.limits import LimitStore

log = logging.getLogger(__name__)

_LEASE_SECONDS = 1.0
_LEASE_SHARE = 0.1
# A count of memories is good for so long, near the limit for less.
_COUNT_SECONDS = 10.0
_NEAR_SECONDS = 1.0
_NEAR = 0.9
# When memories will have been deleted, nobody knows.
_FULL_RETRY_SECONDS = 60
_MOST_TENANTS = 10_000


@dataclass(slots=True)
class _Lease:
    """Requests that this process may let in until `until` (monotonic), or that there is none before `closed_until`."""

    left: int = 0
    until: float = 0.0
    closed_until: float = 0.0
    waiting: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class _Count:
    memories: int
    at: float


class RequestLimit:
    """The rate of a tenant's requests, over all processes."""

    def __init__(self, settings: LimitSettings, store: LimitStore, clock: Callable[[], float] = monotonic) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._leases: dict[str, _Lease] = {}

    async def admit(self, tenant: str) -> None:
        """Counts one request. Raises TooMany when the tenant has no more of them now, RedisUnavailable."""
        lease = self._leases.get(tenant)
        if lease is not None and lease.left and self._clock() < lease.until:
            lease.left -= 1
            return
        own = self._settings.of(tenant)
        if not own.requests_per_minute:
            return
        if lease is None:
            if len(self._leases) >= _MOST_TENANTS:
                self._leases.clear()
            lease = self._leases[tenant] = _Lease()
        self._refuse_while_closed(lease)
        lease.waiting += 1
        try:
            async with lease.lock:
                self._refuse_while_closed(lease)
                if not (lease.left and self._clock() < lease.until):
                    await self._renew(tenant, lease, own.requests_per_minute, own.requests_burst or 1)
                lease.left -= 1
        finally:
            lease.waiting -= 1

    async def _renew(self, tenant: str, lease: _Lease, per_minute: int, burst: int) -> None:
        begun = self._clock()
        wanted = max(lease.waiting, min(int(per_minute / 60 * _LEASE_SHARE), burst // 10), 1)
        taken, wait = await self._store.take(tenant, per_minute=per_minute, burst=burst, wanted=wanted)
        lease.left, lease.until = taken, begun + _LEASE_SECONDS
        if not taken:
            lease.closed_until = self._clock() + wait
            self._refuse_while_closed(lease, at_least=wait)

    def _refuse_while_closed(self, lease: _Lease, at_least: float = 0.0) -> None:
        wait = max(lease.closed_until - self._clock(), at_least)
        if wait > 0:
            LIMITED.labels("requests").inc()
            message = "this tenant has made its requests for now (LIMIT_REQUESTS_PER_MINUTE): wait as long as Retry-After says"
            raise TooMany(message, retry_after=math.ceil(wait), limit="requests")


class MemoryLimit:
    """How many memories a tenant keeps.

    Every process counts for itself, so several together may pass the limit by what they write in a second, and by messages that wait.
    """

    def __init__(self, settings: LimitSettings, count: Callable[[str], Awaitable[int]], clock: Callable[[], float] = monotonic) -> None:
        self._settings = settings
        self._count = count
        self._clock = clock
        self._known: dict[str, _Count] = {}

    async def room_for(self, tenant: str, number: int) -> None:
        """Raises TooMany when `number` memories more are too many."""
        most = self._settings.of(tenant).memories
        if not most or not number:
            return
        known = self._known.get(tenant)
        near = known is not None and known.memories + number > most * _NEAR
        if known is None or self._clock() - known.at > (_NEAR_SECONDS if near else _COUNT_SECONDS):
            if len(self._known) >= _MOST_TENANTS:
                self._known.clear()
            begun = self._clock()
            known = self._known[tenant] = _Count(await self._count(tenant), begun)
        if known.memories + number > most:
            LIMITED.labels("memories").inc()
            message = f"this tenant keeps {most} memories at most (LIMIT_MEMORIES): delete or forget some first"
            raise TooMany(message, retry_after=_FULL_RETRY_SECONDS, limit="memories")
        known.memories += number


class ModelBudget:
    """The language model's tokens of a tenant's day."""

    def __init__(self, settings: LimitSettings, store: LimitStore) -> None:
        self._settings = settings
        self._store = store

    def of(self, chat: ChatModel | None, tenant: str) -> ChatModel | None:
        """The model as this tenant may use it: itself when the tenant has no limit."""
        most = self._settings.of(tenant).model_tokens_per_day
        return MeteredChat(chat, self, tenant) if chat is not None and most else chat

    async def check(self, tenant: str) -> None:
        """Raises BudgetSpent when nothing is left of today's tokens."""
        most = self._settings.of(tenant).model_tokens_per_day or 0
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


class MeteredChat(ChatAround):
    """A ChatModel on a tenant's budget: asked for nothing more when it is spent. The call that spends the last of it is finished."""

    def __init__(self, inner: ChatModel, budget: ModelBudget, tenant: str) -> None:
        super().__init__(inner)
        self._budget = budget
        self._tenant = tenant

    def named(self, model: str) -> MeteredChat:
        """See ChatModel.named; on the same budget."""
        return MeteredChat(self._inner.named(model), self._budget, self._tenant)

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
