"""Ids that follow from what they are of, but that nobody can tell who does not know a key of the store."""

from __future__ import annotations

from hashlib import blake2b
from secrets import token_bytes

from redis.asyncio import Redis
from ulid import ULID

from agent_memory.foundation.storage.connection import redis_errors
from agent_memory.foundation.storage.keyspace import Keys, joined

_FIELD = "id-key"


class KeyedIds:
    """Makes the same id of the same parts, in one store."""

    def __init__(self) -> None:
        """Before `load`, nothing may be stored under an id of these."""
        self._key = b""

    async def load(self, client: Redis, keys: Keys) -> None:
        """Takes the key of a bucket's store, which is made when there is none. Raises RedisUnavailable."""
        with redis_errors():
            stored = await client.hget(keys.config, _FIELD)
            if stored is None:
                await client.hsetnx(keys.config, _FIELD, token_bytes(32).hex())
                stored = await client.hget(keys.config, _FIELD)
        assert isinstance(stored, bytes)
        self._key = bytes.fromhex(stored.decode())

    def of(self, *parts: str | None) -> str:
        """The id of a sequence of strings, a ULID."""
        return str(ULID.from_bytes(b"\x01" + blake2b(joined(*parts), digest_size=15, key=self._key).digest()))

    def instead_of(self, memory_id: str) -> str:
        """The id for what was going to have one that belongs to another owner by now."""
        return self.of("instead", memory_id)
