from __future__ import annotations

from agent_memory.features.access.embedding_budget import EmbeddingBudget
from agent_memory.features.access.limits import ModelBudget
from agent_memory.foundation.llm.base import ChatModel, Embedder


class TenantModels:
    """The models within a tenant's budget."""

    def __init__(self, chat: ChatModel | None, embedder: Embedder, budget: ModelBudget, embeddings: EmbeddingBudget) -> None:
        self._chat = chat
        self._embedder = embedder
        self._budget = budget
        self._embeddings = embeddings

    def chat(self, tenant: str) -> ChatModel | None:
        return self._budget.metered_chat(self._chat, tenant)

    def embedder(self, tenant: str) -> Embedder:
        return self._embeddings.metered_embedder(tenant) if self._embeddings.limits(tenant) else self._embedder
