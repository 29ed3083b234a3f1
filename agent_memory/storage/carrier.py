"""docket's stream, where it needs a hand: a message that cannot be read ends every worker that reads it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from agent_memory.storage.connection import redis_errors
from agent_memory.storage.keys import Keys

_LOOK = 200
_KEPT = 1000


@dataclass(frozen=True, slots=True)
class Carrier:
    """A docket's stream and its consumer group."""

    stream: str
    group: str


class CarrierGuard:
    """Sets messages aside that were delivered again and again and never acknowledged."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    async def set_aside(self, carrier: Carrier, deliveries: int) -> int:
        """Moves messages with at least so many deliveries to the list of dead messages; returns how many.

        Nothing is lost by it: a task is only the carrier of a mark in the outbox, which stays due.
        """
        moved = 0
        with redis_errors():
            pending: Any = await self._client.xpending_range(carrier.stream, carrier.group, "-", "+", _LOOK)
            for entry in pending:
                if int(entry["times_delivered"]) < deliveries:
                    continue
                name = entry["message_id"]
                found: Any = await self._client.xrange(carrier.stream, name, name)
                body = {k.hex(): v.hex() for _, fields in found for k, v in fields.items()}
                async with self._client.pipeline(transaction=True) as pipe:
                    pipe.lpush(self._keys.dead_messages, json.dumps({"id": name.decode(), "fields": body}))
                    pipe.ltrim(self._keys.dead_messages, 0, _KEPT - 1)
                    pipe.xack(carrier.stream, carrier.group, name)
                    pipe.xdel(carrier.stream, name)
                    await pipe.execute()
                moved += 1
        return moved

    async def dead(self) -> int:
        """How many messages were set aside."""
        with redis_errors():
            return int(await self._client.llen(self._keys.dead_messages))
