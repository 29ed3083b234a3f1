"""Derive ids from content with a secret key, so that they cannot be guessed."""

from __future__ import annotations

from hashlib import blake2b
from secrets import token_bytes

from redis.asyncio import Redis
from ulid import ULID

from agent_memory.foundation.storage.connection import redis_errors
from agent_memory.foundation.storage.keyspace import Keys, joined

_FIELD = "id-key"


class KeyedIds:
    def __init__(self) -> None:
        """Create an instance with no key. Call `load` before storing anything under these ids."""
        self._key = b""

    async def load(self, client: Redis, keys: Keys) -> None:
        """Load the store's secret key, or create it. Raises RedisUnavailable."""
        with redis_errors():
            stored = await client.hget(keys.config, _FIELD)
            if stored is None:
                await client.hsetnx(keys.config, _FIELD, token_bytes(32).hex())
                stored = await client.hget(keys.config, _FIELD)
        assert isinstance(stored, bytes)
        self._key = bytes.fromhex(stored.decode())

    def of(self, *parts: str | None) -> str:
        """Return a ULID derived from the given strings."""
        return str(ULID.from_bytes(b"\x01" + blake2b(joined(*parts), digest_size=15, key=self._key).digest()))

    def instead_of(self, memory_id: str) -> str:
        """Return a replacement for an id that already belongs to another owner."""
        return self.of("instead", memory_id)
