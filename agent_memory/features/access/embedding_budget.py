"""Limit each tenant's embedding tokens per day.

Each process counts its usage and writes it to Redis once a second, so that a query needs no extra round trip. Several
processes together may therefore exceed the limit by what they use between two writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic

from agent_memory.features.access.limits import LimitStore, MeteredChat, budget_spent
from agent_memory.foundation.core.deferred_writes import DeferredWrite
from agent_memory.foundation.core.errors import AgentMemoryError, ModelUnavailable
from agent_memory.foundation.core.settings import LimitSettings
from agent_memory.foundation.llm.base import ChatModel, Embedder, TextRole, Vectors
from agent_memory.foundation.llm.wrappers.base import EmbedderWrapper

# Refresh a count that is older than this. Meanwhile, requests use the old count.
_FRESH_SECONDS = 5.0
_DELAY_SECONDS = 1.0
_MOST_TENANTS = 10_000
# UTF-8 bytes per token: about four in English, three or four in other scripts.
_BYTES_PER_TOKEN = 4


@dataclass(slots=True)
class _TenantDay:
    """A tenant's usage on one day, read from Redis at the time `at`. `at` and `ends` are monotonic times.

    `tokens` includes the `waiting` tokens, which are not yet in Redis.
    """

    tokens: int
    waiting: int
    at: float
    ends: float


class EmbeddingBudget:
    """Counts each tenant's embedding tokens. Counts nothing unless the embeddings are `paid`."""

    def __init__(
        self,
        settings: LimitSettings,
        store: LimitStore,
        embedder: Embedder,
        *,
        paid: bool,
        clock: Callable[[], float] = monotonic,
        delay_seconds: float = _DELAY_SECONDS,
    ) -> None:
        self._settings = settings
        self._store = store
        self._embedder = embedder
        self._limited = paid and settings.limits_any("model_tokens_per_day")
        self._clock = clock
        self._days: dict[str, _TenantDay] = {}
        self._stale: set[str] = set()
        self._later = DeferredWrite(self.flush, "tokens of embeddings", delay_seconds=delay_seconds)

    def limits(self, tenant: str) -> bool:
        return self._limited and bool(self._settings.for_tenant(tenant).model_tokens_per_day)

    def metered_embedder(self, tenant: str) -> Embedder:
        return _MeteredEmbedder(self._embedder, self, tenant) if self.limits(tenant) else self._embedder

    async def check(self, tenant: str) -> None:
        """Raise BudgetSpent if the tenant has used up today's tokens. The first check of a day may raise RedisUnavailable."""
        day, now = self._days.get(tenant), self._clock()
        if day is None or now >= day.ends:
            day = await self._write(tenant)
        elif now - day.at > _FRESH_SECONDS:
            self._soon(tenant)
        most = self._settings.for_tenant(tenant).model_tokens_per_day or 0
        if day.tokens >= most:
            raise budget_spent(most, day.ends - now)

    def note(self, tenant: str, texts: Sequence[str]) -> None:
        day = self._days.get(tenant)
        if day is not None:
            tokens = sum(max(len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN, 1) for text in texts)
            day.tokens += tokens
            day.waiting += tokens
            self._soon(tenant)

    async def flush(self) -> None:
        """Write waiting counts to Redis, and refresh totals. Raises RedisUnavailable, but keeps unwritten counts."""
        while self._stale:
            tenant = next(iter(self._stale))
            await self._write(tenant)
            self._stale.discard(tenant)

    async def close(self) -> None:
        await self._later.close()

    async def _write(self, tenant: str) -> _TenantDay:
        day = self._days.get(tenant)
        waiting = 0 if day is None else day.waiting
        begun = self._clock()
        spent = await self._store.spend(tenant, waiting)
        if day is None:
            if len(self._days) >= _MOST_TENANTS:
                self._days = {name: each for name, each in self._days.items() if each.waiting}
            day = self._days.setdefault(tenant, _TenantDay(0, 0, 0.0, 0.0))
        day.waiting -= waiting
        day.tokens, day.at, day.ends = spent.tokens + day.waiting, begun, begun + spent.seconds_left
        return day

    def _soon(self, tenant: str) -> None:
        self._stale.add(tenant)
        self._later.soon()


class _MeteredEmbedder(EmbedderWrapper):
    """An embedder that charges a tenant's budget. Cached vectors are free."""

    def __init__(self, inner: Embedder, budget: EmbeddingBudget, tenant: str) -> None:
        super().__init__(inner)
        self._embedder = inner
        self._budget = budget
        self._tenant = tenant

    async def embed(self, texts: Sequence[str], *, role: TextRole = "document", timeout: float | None = None) -> Vectors:
        """Embed texts as `Embedder.embed` does. Raises BudgetSpent. Calls that do not reach a model are free."""
        missing = self._embedder.missing(texts, role=role)
        if not missing:
            return await self._embedder.embed(texts, role=role, timeout=timeout)
        await self._budget.check(self._tenant)
        try:
            vectors = await self._embedder.embed(texts, role=role, timeout=timeout)
        except ModelUnavailable:
            raise
        except AgentMemoryError:
            self._budget.note(self._tenant, missing)
            raise
        self._budget.note(self._tenant, missing)
        return vectors

    def missing(self, texts: Sequence[str], *, role: TextRole = "document") -> list[str]:
        return self._embedder.missing(texts, role=role)

    async def adopt(self, rows: Vectors) -> Vectors:
        return await self._embedder.adopt(rows)


class TenantModels:
    """Returns chat models and embedders that charge a tenant's budget."""

    def __init__(self, settings: LimitSettings, store: LimitStore, chat: ChatModel | None, embeddings: EmbeddingBudget) -> None:
        self._settings = settings
        self._store = store
        self._chat = chat
        self.embedder = embeddings.metered_embedder

    def chat(self, tenant: str) -> ChatModel | None:
        most = self._settings.for_tenant(tenant).model_tokens_per_day
        return MeteredChat(self._chat, self._store, tenant, most) if self._chat is not None and most else self._chat
