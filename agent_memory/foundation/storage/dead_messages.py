"""Remove messages that crash every worker from docket's stream."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from agent_memory.foundation.storage.connection import redis_errors
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Script

_PENDING_READ = 200
_MOST_DEAD = 1000


@dataclass(frozen=True, slots=True)
class Carrier:
    stream: str
    group: str


class CarrierGuard:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._keep = Script(client, "storage/dead_message_keep")

    async def move_unread(self, carrier: Carrier, deliveries: int, free_key: Callable[[str], Awaitable[None]]) -> int:
        """Move messages delivered at least `deliveries` times to the dead messages.

        Return the number of moved messages. No work is lost, because the outbox still contains
        their marks. `free_key` must free a docket key.
        """
        moved = 0
        with redis_errors():
            pending: Any = await self._client.xpending_range(carrier.stream, carrier.group, "-", "+", _PENDING_READ)
            for entry in pending:
                if int(entry["times_delivered"]) < deliveries:
                    continue
                name = entry["message_id"]
                messages: Any = await self._client.xrange(carrier.stream, name, name)
                fields = {k: v for _, message in messages for k, v in message.items()}
                body = {k.hex(): v.hex() for k, v in fields.items()}
                # First free the key. If this worker dies after that, another worker can still move the message.
                await free_key(fields.get(b"key", b"").decode("utf-8", "replace"))
                moved += await self._keep(
                    stream=carrier.stream,
                    dead_messages=self._keys.dead_messages,
                    group=carrier.group,
                    message=name,
                    body=json.dumps({"id": name.decode(), "fields": body}),
                    limit=_MOST_DEAD,
                )
        return moved
