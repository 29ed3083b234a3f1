"""Redact secrets in all texts before they go to a model server."""

from __future__ import annotations

from collections.abc import Sequence

from agent_memory.foundation.llm.base import Answer, ChatMessage, Vectors
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.llm.wrappers.base import ChatWrapper, EmbedderWrapper
from agent_memory.foundation.text.redaction import redact


class RedactingChat(ChatWrapper):
    def with_model(self, model: str) -> RedactingChat:
        return RedactingChat(self._inner.with_model(model))

    async def text(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, timeout: float | None = None) -> str:
        return await self._inner.text(await _redacted(messages), max_tokens=max_tokens, timeout=timeout)

    async def structured(
        self, messages: Sequence[ChatMessage], answer: type[Answer], *, max_tokens: int | None = None, timeout: float | None = None
    ) -> Answer:
        return await self._inner.structured(await _redacted(messages), answer, max_tokens=max_tokens, timeout=timeout)


class RedactingEmbedder(EmbedderWrapper):
    async def embed(self, texts: Sequence[str], *, timeout: float | None = None) -> Vectors:
        clean = await run_in_thread(lambda: [redact(text) for text in texts], sum(map(len, texts)))
        return await self._inner.embed(clean, timeout=timeout)


async def _redacted(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    characters = sum(len(message.content) for message in messages)
    return await run_in_thread(lambda: [ChatMessage(message.role, redact(message.content)) for message in messages], characters)
