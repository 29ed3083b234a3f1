"""What tenants have used of their limits, by Redis' own clock: a token bucket of requests each, and the model tokens of the day."""

from __future__ import annotations

from dataclasses import dataclass

from redis.asyncio import Redis

from agent_memory.storage.keys import Keys
from agent_memory.storage.lua import Script
from agent_memory.storage.outbox_scripts import PRELUDE

_DAY_MS = 24 * 3600 * 1000

# A token bucket: `n` tokens at `t` (ms), which fill up at a rate. Whole tokens are taken, parts stay.
# KEYS bucket; ARGV tokens per ms, most tokens, tokens wanted, least that are of use -> {tokens taken, ms until there are so many (or 0)}
_TAKE = (
    PRELUDE
    + """
local rate, most, want, least = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local found = redis.call('HMGET', KEYS[1], 'n', 't')
local left = most
if found[1] then left = math.min(most, tonumber(found[1]) + math.max(0, MS - tonumber(found[2])) * rate) end
local taken = math.floor(left) >= least and math.min(want, math.floor(left)) or 0
left = left - taken
redis.call('HSET', KEYS[1], 'n', string.format('%.6f', left), 't', string.format('%.0f', MS))
redis.call('PEXPIRE', KEYS[1], math.ceil((most - left) / rate) + 1000)
if taken > 0 then return {taken, 0} end
return {0, math.ceil((least - left) / rate)}
"""
)

# KEYS the tenant's day; ARGV ms of a day, tokens (0: only looks) -> {tokens of today, ms until tomorrow}
_SPEND = (
    PRELUDE
    + """
local day = math.floor(MS / tonumber(ARGV[1]))
local found = redis.call('HMGET', KEYS[1], 'd', 'm')
local spent = tonumber(found[1] or '-1') == day and tonumber(found[2]) or 0
local more = tonumber(ARGV[2])
if more > 0 then
  spent = spent + more
  redis.call('HSET', KEYS[1], 'd', string.format('%.0f', day), 'm', string.format('%.0f', spent))
  redis.call('PEXPIRE', KEYS[1], 2 * tonumber(ARGV[1]))
end
return {string.format('%.0f', spent), string.format('%.0f', (day + 1) * tonumber(ARGV[1]) - MS)}
"""
)


@dataclass(frozen=True, slots=True)
class Spent:
    """Model tokens of today (UTC), and the seconds until tomorrow."""

    tokens: int
    seconds_left: float


class LimitStore:
    """Counts what tenants use. These methods take a tenant, not a scope: a limit is the whole tenant's, whoever of it asks."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._keys = keys
        # In a full Redis, too, requests are counted: reading goes on there.
        self._take = Script(client, _TAKE, flags="allow-oom")
        self._spend = Script(client, _SPEND, flags="allow-oom")

    async def take(self, tenant: str, *, per_minute: int, burst: int, wanted: int, least: int = 1) -> tuple[int, float]:
        """Takes up to `wanted` requests out of the tenant's bucket, or none where there are not `least` (at most `burst`).

        Returns how many that were, and else the seconds until there are so many.
        """
        taken, wait = await self._take([self._keys.rate(tenant)], [repr(per_minute / 60_000), burst, wanted, least])
        return int(taken), int(wait) / 1000

    async def spend(self, tenant: str, tokens: int) -> Spent:
        """Adds model tokens to the tenant's day (0: adds none) and tells how many it has by now."""
        spent, left = await self._spend([self._keys.spent(tenant)], [_DAY_MS, tokens])
        return Spent(int(spent), int(left) / 1000)
