"""Let workers share the context sizes that they learn from model servers."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from agent_memory.foundation.llm.base import ChatModel
from agent_memory.foundation.llm.model_context import KNOWN_SECONDS
from agent_memory.foundation.storage.context_limits import ContextLimitStore

# A worker sees what another worker learned at most this much later.
_LOOK_SECONDS = 30.0
_MOST_MODELS = 1000
# After this time, a model that refuses pictures gets another one: its server may have been updated.
_BLIND_SECONDS = 24 * 3600


class ContextLimits:
    """A store of learned context sizes. Use this only in background work, because requests must not wait for the store."""

    def __init__(self, store: ContextLimitStore, clock: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._clock = clock
        self._look_at: dict[tuple[str, str], float] = {}

    async def load_learned(self, chat: ChatModel) -> None:
        """Update a model's context from the store and from the model's server. Raises RedisUnavailable."""
        model_key = (chat.context.where, chat.context.model)
        if self._clock() >= self._look_at.get(model_key, 0.0):
            if len(self._look_at) >= _MOST_MODELS:
                self._look_at.clear()
            self._look_at[model_key] = self._clock() + _LOOK_SECONDS
            learned = await self._store.load_limit(*model_key)
            if learned is not None:
                chat.context.take_over(learned.tokens, learned.seconds)
            timeout_limit = await self._store.load_limit(*model_key, asked=True)
            if timeout_limit is not None:
                chat.context.take_over_asked(timeout_limit.tokens, timeout_limit.seconds)
        await chat.ask_context()

    async def save_blind(self, chat: ChatModel) -> None:
        """Remember that a model refuses pictures. Raises RedisUnavailable."""
        await self._store.save_blind(chat.context.where, chat.context.model, seconds=_BLIND_SECONDS)

    async def is_blind(self, chat: ChatModel) -> bool:
        """True if a model refused pictures recently. Raises RedisUnavailable."""
        return await self._store.is_blind(chat.context.where, chat.context.model)

    async def save_learned(self, chat: ChatModel) -> None:
        """Store the limits that a refusal or a timeout revealed. Raises RedisUnavailable."""
        limit = chat.context.limit
        if limit.source == "learned":
            await self._store.save_limit(chat.context.where, chat.context.model, limit.tokens, seconds=KNOWN_SECONDS)
        if (most_asked := chat.context.most_asked) is not None:
            await self._store.save_limit(chat.context.where, chat.context.model, most_asked, seconds=KNOWN_SECONDS, asked=True)
