"""What tenants have used of their limits, by Redis' own clock: a token bucket of requests each, and the model tokens of the day."""

from __future__ import annotations

from dataclasses import dataclass

from redis.asyncio import Redis

from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Script

_DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class TokensSpent:
    """Model tokens of today (UTC), and the seconds until tomorrow."""

    tokens: int
    seconds_left: float


class LimitStore:
    """Counts what tenants use. These methods take a tenant, not a scope: a limit is the whole tenant's, whoever of it asks."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._keys = keys
        self._take = Script(client, "access/requests_take")
        self._spend = Script(client, "access/model_tokens_spend")

    async def take(self, tenant: str, *, per_minute: int, burst: int, wanted: int, least: int = 1) -> tuple[int, float]:
        """Takes up to `wanted` requests out of the tenant's bucket, or none where there are not `least` (at most `burst`).

        Returns how many that were, and else the seconds until there are so many.
        """
        rate = repr(per_minute / 60_000)
        taken, wait = await self._take(bucket=self._keys.rate(tenant), rate=rate, most=burst, wanted=wanted, least=least)
        return int(taken), int(wait) / 1000

    async def spend(self, tenant: str, tokens: int) -> TokensSpent:
        """Adds model tokens to the tenant's day (0: adds none) and tells how many it has by now."""
        spent, left = await self._spend(spent=self._keys.spent(tenant), day_ms=_DAY_MS, tokens=tokens)
        return TokensSpent(int(spent), int(left) / 1000)
