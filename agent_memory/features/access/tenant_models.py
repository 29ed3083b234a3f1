"""Charge each tenant's model calls to its daily token budget."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from agent_memory.features.access.limits import LimitStore, TokenBudget
from agent_memory.foundation.core.errors import AgentMemoryError, ModelUnavailable
from agent_memory.foundation.core.settings import LimitSettings
from agent_memory.foundation.llm.base import Answer, ChatMessage, ChatModel, Embedder, TextRole, Vectors
from agent_memory.foundation.llm.token_usage import metering
from agent_memory.foundation.llm.wrappers.base import ChatWrapper, EmbedderWrapper

# UTF-8 bytes per token: about four in English, three or four in other scripts.
_BYTES_PER_TOKEN = 4


class TenantModels:
    """Provides models that charge a tenant's budget. Embeddings are free unless `paid` is true."""

    def __init__(self, settings: LimitSettings, store: LimitStore, chat: ChatModel | None, embedder: Embedder, *, paid: bool) -> None:
        self._settings = settings
        self._store = store
        self._chat = chat
        self._embedder = embedder
        self._paid = paid

    def chat(self, tenant: str) -> ChatModel | None:
        budget = self._budget(tenant)
        return _MeteredChat(self._chat, budget) if self._chat is not None and budget is not None else self._chat

    def embedder(self, tenant: str) -> Embedder:
        budget = self._budget(tenant) if self._paid else None
        return _MeteredEmbedder(self._embedder, budget) if budget is not None else self._embedder

    def _budget(self, tenant: str) -> TokenBudget | None:
        most = self._settings.for_tenant(tenant).model_tokens_per_day
        return TokenBudget(self._store, tenant, most) if most else None


class _MeteredChat(ChatWrapper):
    def __init__(self, inner: ChatModel, budget: TokenBudget) -> None:
        super().__init__(inner)
        self._budget = budget

    def with_model(self, model: str) -> _MeteredChat:
        return _MeteredChat(self._inner.with_model(model), self._budget)

    async def text(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, timeout: float | None = None) -> str:
        async with self._charged():
            return await self._inner.text(messages, max_tokens=max_tokens, timeout=timeout)

    async def structured(
        self, messages: Sequence[ChatMessage], answer: type[Answer], *, max_tokens: int | None = None, timeout: float | None = None
    ) -> Answer:
        async with self._charged():
            return await self._inner.structured(messages, answer, max_tokens=max_tokens, timeout=timeout)

    @asynccontextmanager
    async def _charged(self) -> AsyncGenerator[None]:
        """Charge the budget for tokens used in the `async with` block. Raises BudgetSpent."""
        await self._budget.check()
        with metering() as used:
            try:
                yield
            finally:
                await self._budget.charge(used.tokens)


class _MeteredEmbedder(EmbedderWrapper):
    """An embedder that charges a budget. Cached vectors are free."""

    def __init__(self, inner: Embedder, budget: TokenBudget) -> None:
        super().__init__(inner)
        self._embedder = inner
        self._budget = budget

    async def embed(self, texts: Sequence[str], *, role: TextRole = "document", timeout: float | None = None) -> Vectors:
        """Embed texts like `Embedder.embed`. Raises BudgetSpent."""
        missing = self._embedder.missing(texts, role=role)
        if not missing:
            return await self._embedder.embed(texts, role=role, timeout=timeout)
        await self._budget.check()
        tokens = sum(max(len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN, 1) for text in missing)
        try:
            vectors = await self._embedder.embed(texts, role=role, timeout=timeout)
        except ModelUnavailable:
            raise
        except AgentMemoryError:
            await self._budget.charge(tokens)
            raise
        await self._budget.charge(tokens)
        return vectors

    def missing(self, texts: Sequence[str], *, role: TextRole = "document") -> list[str]:
        return self._embedder.missing(texts, role=role)

    async def adopt(self, rows: Vectors) -> Vectors:
        return await self._embedder.adopt(rows)
