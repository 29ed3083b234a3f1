"""Models that are told no secrets: what goes to a model server is redacted at this one place, whoever asks and for whatever."""

from __future__ import annotations

from collections.abc import Sequence

from agent_memory.foundation.llm.base import Answer, ChatMessage, Vectors
from agent_memory.foundation.llm.threads import aside
from agent_memory.foundation.llm.wrappers.base import ChatWrapper, EmbedderWrapper
from agent_memory.foundation.text.redaction import redact


class RedactingChat(ChatWrapper):
    """A ChatModel behind which another one never sees a secret."""

    def with_model(self, model: str) -> RedactingChat:
        """See ChatModel.named."""
        return RedactingChat(self._inner.with_model(model))

    async def text(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, timeout: float | None = None) -> str:
        """See ChatModel.text."""
        return await self._inner.text(await _redacted(messages), max_tokens=max_tokens, timeout=timeout)

    async def structured(
        self, messages: Sequence[ChatMessage], answer: type[Answer], *, max_tokens: int | None = None, timeout: float | None = None
    ) -> Answer:
        """See ChatModel.structured."""
        return await self._inner.structured(await _redacted(messages), answer, max_tokens=max_tokens, timeout=timeout)


class RedactingEmbedder(EmbedderWrapper):
    """An Embedder behind which another one never sees a secret."""

    async def embed(self, texts: Sequence[str], *, timeout: float | None = None) -> Vectors:
        """See Embedder.embed."""
        clean = await aside(lambda: [redact(text) for text in texts], sum(map(len, texts)))
        return await self._inner.embed(clean, timeout=timeout)


async def _redacted(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    characters = sum(len(message.content) for message in messages)
    return await aside(lambda: [ChatMessage(message.role, redact(message.content)) for message in messages], characters)
