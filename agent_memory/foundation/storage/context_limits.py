"""Store the model limits that workers learn, so that other processes can use them for a limited time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from redis.asyncio import Redis

from agent_memory.foundation.storage.cluster import bucket_clients
from agent_memory.foundation.storage.connection import read, write
from agent_memory.foundation.storage.keyspace import Keys


@dataclass(frozen=True, slots=True)
class LearnedLimit:
    """A learned limit in tokens, valid for another `seconds` seconds.

    After a "too long" error, the limit covers the prompt and the answer together. After a timeout, the limit covers the
    message tokens of one request.
    """

    tokens: int
    seconds: float


class ContextLimitStore:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    async def save_limit(self, where: str, model: str, tokens: int, *, seconds: float, asked: bool = False) -> None:
        """Store the limit from a "too long" error or, with `asked`, the limit learned from a timeout."""
        key = self._keys.context_limit(where, model, asked=asked)
        await write(self._client, lambda pipe: pipe.set(key, str(tokens), px=max(int(seconds * 1000), 1)))

    async def load_limit(self, where: str, model: str, *, asked: bool = False) -> LearnedLimit | None:
        """Return the limit from a recent "too long" error or, with `asked`, from a timeout. Return None if there is none."""
        key = self._keys.context_limit(where, model, asked=asked)
        tokens, left = await read(self._client, lambda pipe: (pipe.get(key), pipe.pttl(key)))
        return None if tokens is None or left <= 0 else LearnedLimit(int(tokens), left / 1000)

    async def save_blind(self, where: str, model: str, *, seconds: int) -> None:
        await write(self._client, lambda pipe: pipe.set(self._keys.blind(where, model), "1", ex=seconds))

    async def is_blind(self, where: str, model: str) -> bool:
        """True if the model refused pictures recently."""
        (refused,) = await read(self._client, lambda pipe: pipe.exists(self._keys.blind(where, model)))
        return bool(refused)


async def learned_at(url: str, buckets: Sequence[Keys], where: str, model: str, *, command_timeout: float) -> LearnedLimit | None:
    """Return the smallest limit from a "too long" error in all buckets of a store, or None.

    Raises StartupError and RedisUnavailable.
    """
    async with bucket_clients(url, buckets, command_timeout=command_timeout) as clients:
        limits = [await ContextLimitStore(client, keys).load_limit(where, model) for keys, client in clients]
    return min((limit for limit in limits if limit is not None), key=lambda limit: limit.tokens, default=None)
