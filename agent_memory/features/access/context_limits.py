"""Share learned model context sizes between workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

from redis.asyncio import Redis

from agent_memory.foundation.llm.base import ChatModel
from agent_memory.foundation.llm.model_context import LEARNED_SECONDS, ModelContext
from agent_memory.foundation.storage.cluster import bucket_clients
from agent_memory.foundation.storage.connection import read, write
from agent_memory.foundation.storage.keyspace import Keys

# The longest delay until a worker sees what another worker has learned.
_LOOK_SECONDS = 30.0
_MOST_MODELS = 1000
# After this time, try again to send pictures to a model that refused them: its server may have been updated.
_BLIND_SECONDS = 24 * 3600


class ContextLimits:
    """Stores learned context sizes. Use it only in background jobs, not in requests."""

    def __init__(self, client: Redis, keys: Keys, clock: Callable[[], float] = monotonic) -> None:
        self._client = client
        self._keys = keys
        self._clock = clock
        self._look_at: dict[tuple[str, str], float] = {}

    async def load_learned(self, chat: ChatModel) -> None:
        """Update a model's context size from the store and the model server.

        Raises RedisUnavailable.
        """
        model_key = (chat.context.where, chat.context.model)
        if self._clock() >= self._look_at.get(model_key, 0.0):
            if len(self._look_at) >= _MOST_MODELS:
                self._look_at.clear()
            self._look_at[model_key] = self._clock() + _LOOK_SECONDS
            await self.take_over_stored(chat.context)
        await chat.ask_context()

    async def take_over_stored(self, context: ModelContext) -> None:
        """Apply a model's stored limits to its context. Raises RedisUnavailable."""
        for is_request_limit, take_over in ((False, context.take_over), (True, context.take_over_request_limit)):
            key = self._keys.context_limit(context.where, context.model, is_request_limit=is_request_limit)
            tokens, left = await read(self._client, lambda pipe, key=key: (pipe.get(key), pipe.pttl(key)))
            if tokens is not None and left > 0:
                take_over(int(tokens), left / 1000)

    async def save_learned(self, chat: ChatModel) -> None:
        """Store the limits learned from a refusal or timeout. Raises RedisUnavailable."""
        limit = chat.context.limit
        for is_request_limit, tokens in ((False, limit.tokens if limit.source == "learned" else None), (True, chat.context.request_limit)):
            if tokens is not None:
                key = self._keys.context_limit(chat.context.where, chat.context.model, is_request_limit=is_request_limit)
                await write(self._client, lambda pipe, key=key, tokens=tokens: pipe.set(key, str(tokens), ex=int(LEARNED_SECONDS)))

    async def save_blind(self, chat: ChatModel) -> None:
        """Record that a model rejects images. Raises RedisUnavailable."""
        key = self._keys.blind(chat.context.where, chat.context.model)
        await write(self._client, lambda pipe: pipe.set(key, "1", ex=_BLIND_SECONDS))

    async def is_blind(self, chat: ChatModel) -> bool:
        """True if a model recently rejected images. Raises RedisUnavailable."""
        key = self._keys.blind(chat.context.where, chat.context.model)
        (refused,) = await read(self._client, lambda pipe: pipe.exists(key))
        return bool(refused)


async def take_over_from(url: str, buckets: Sequence[Keys], context: ModelContext, *, command_timeout: float) -> None:
    """Apply the smallest limits found in any bucket to a context.

    Raises StartupError and RedisUnavailable.
    """
    async with bucket_clients(url, buckets, command_timeout=command_timeout) as clients:
        for keys, client in clients:
            await ContextLimits(client, keys).take_over_stored(context)
