"""Tenants' usage by Redis' clock: a token bucket of requests, and the day's model tokens."""

from __future__ import annotations

from dataclasses import dataclass

from redis.asyncio import Redis

from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Script

_DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class TokensSpent:
    tokens: int
    seconds_left: float


class LimitStore:
    """Counts usage per tenant."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._keys = keys
        self._take = Script(client, "access/requests_take")
        self._spend = Script(client, "access/model_tokens_spend")

    async def take(self, tenant: str, *, per_minute: int, burst: int, wanted: int, least: int = 1) -> tuple[int, float]:
        """Take up to `wanted` requests from the bucket, or none if fewer than `least` (at most `burst`) are left.

        Return how many, and the seconds until `least` are available.
        """
        rate = repr(per_minute / 60_000)
        taken, wait = await self._take(bucket=self._keys.rate(tenant), rate=rate, most=burst, wanted=wanted, least=least)
        return int(taken), int(wait) / 1000

    async def spend(self, tenant: str, tokens: int) -> TokensSpent:
        """Add model tokens to the tenant's day (0: none); return the total."""
        spent, left = await self._spend(spent=self._keys.spent(tenant), day_ms=_DAY_MS, tokens=tokens)
        return TokensSpent(int(spent), int(left) / 1000)
