"""What stands around another model: everything that is not asked goes through unchanged."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from agent_memory.foundation.llm.base import ChatMessage, ChatModel, EmbeddingModel
from agent_memory.foundation.llm.model_context import ModelContext


class ChatWrapper:
    """The part of a ChatModel that every one around another has: its name, its window, its end."""

    def __init__(self, inner: ChatModel) -> None:
        self._inner = inner

    @property
    def model(self) -> str:
        """The inner model's name."""
        return self._inner.model

    @property
    def context_window(self) -> int:
        """The inner model's window."""
        return self._inner.context_window

    @property
    def context(self) -> ModelContext:
        """The inner model's context."""
        return self._inner.context

    async def ask_context(self) -> None:
        """See ChatModel.ask_context."""
        await self._inner.ask_context()

    def room(self, prompt: Sequence[ChatMessage], answer: type[BaseModel] | None = None) -> int:
        """See ChatModel.room."""
        return self._inner.room(prompt, answer)

    async def close(self) -> None:
        """Closes the inner model."""
        await self._inner.close()


class EmbedderWrapper:
    """The same of an EmbeddingModel: its model, its dimensions, its end."""

    def __init__(self, inner: EmbeddingModel) -> None:
        self._inner = inner

    @property
    def model(self) -> str:
        """The inner embedder's model."""
        return self._inner.model

    @property
    def dimensions(self) -> int:
        """The inner embedder's dimensions."""
        return self._inner.dimensions

    async def close(self) -> None:
        """Closes the inner embedder."""
        await self._inner.close()
