"""Define base classes for models that wrap another model."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from agent_memory.foundation.llm.base import ChatMessage, ChatModel, EmbeddingModel
from agent_memory.foundation.llm.model_context import ModelContext


class ChatWrapper:
    def __init__(self, inner: ChatModel) -> None:
        self._inner = inner

    @property
    def model(self) -> str:
        return self._inner.model

    @property
    def context(self) -> ModelContext:
        return self._inner.context

    async def ask_context(self) -> None:
        await self._inner.ask_context()

    def room(self, prompt: Sequence[ChatMessage], answer: type[BaseModel] | None = None) -> int:
        return self._inner.room(prompt, answer)

    async def close(self) -> None:
        await self._inner.close()


class EmbedderWrapper:
    def __init__(self, inner: EmbeddingModel) -> None:
        self._inner = inner

    @property
    def model(self) -> str:
        return self._inner.model

    @property
    def dimensions(self) -> int:
        return self._inner.dimensions

    async def close(self) -> None:
        await self._inner.close()
