"""Identify a store by a marker in each bucket and in the data directory.

If Redis does not have the marker, it has lost its data or is the wrong server.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.storage.cluster import wrong_bucket_count
from agent_memory.foundation.storage.connection import redis_errors
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.lua_files import load
from agent_memory.foundation.storage.round_trip import exchange

log = get_logger(__name__)

FILE_NAME = "store.json"

_PROBE = load("storage/marker_probe")


@dataclass(frozen=True, slots=True)
class StoreState:
    """The state of a store. Times are in ms on the Redis clock."""

    id: str | None
    made_ms: int
    lost: str | None
    """The id of the lost store. None once an operator has accepted the loss."""
    accepted: int
    """The time when an operator last accepted the data in Redis."""
    buckets: str | None
    """The number of buckets. Only the first bucket records it."""
    now: int
    indexes: frozenset[str]
    refusal: Exception | None


class StoreFile:
    """A file in a data directory that maps key roots to store ids."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME

    def id_of(self, keys: Keys) -> str | None:
        """Return the store's id, or None. Raises StartupError if the file cannot be read."""
        return self._read().get(keys.root)

    def require_buckets(self, buckets: Sequence[Keys]) -> None:
        """Raise StartupError if the file lists more buckets of this store."""
        listed = sum(root.startswith(f"{buckets[0].prefix}:{{") for root in self._read())
        # A first start that was interrupted lists fewer.
        if listed > len(buckets):
            raise wrong_bucket_count(listed, len(buckets))

    def note(self, keys: Keys, store_id: str) -> None:
        ids = self._read()
        if ids.get(keys.root) == store_id:
            return
        fresh = self.path.with_suffix(".new")
        try:
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                json.dump({**ids, keys.root: store_id}, file)
            fresh.replace(self.path)
        except OSError as error:
            # Redis also has the marker. The next check tries to write the file again.
            log.warning("cannot write the file with the ids of stores", file=self.path, error=error.strerror or error)

    def _read(self) -> dict[str, str]:
        try:
            ids: Any = json.loads(self.path.read_text())
            return {str(name): str(value) for name, value in ids.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError) as error:
            raise StartupError(f"{self.path}, which names the store in this directory, cannot be read: {error}") from error


async def see(client: Redis, keys: Keys, *, touch: str = "") -> StoreState:
    """Return the state of the store. Raises RedisUnavailable.

    If `touch` is the store's id, also check that Redis can write to its append-only file.
    """
    with redis_errors():
        row, time, listed, probe = await exchange(
            client,
            [
                ("HMGET", keys.config, "store", "made", "lost", "accepted", "buckets"),
                ("TIME",),
                ("FT._LIST",),
                _PROBE.command("EVAL", _PROBE.source, None, {"config": keys.config, "store_id": touch or None}),
            ],
        )
        for reply in (row, time, listed):
            if isinstance(reply, Exception):
                raise reply
    return StoreState(
        id=_text(row[0]),
        made_ms=int(row[1] or 0),
        lost=_text(row[2]),
        accepted=int(row[3] or 0),
        buckets=_text(row[4]),
        now=int(time[0]) * 1000 + int(time[1]) // 1000,
        indexes=frozenset(name.decode() for name in listed or ()),
        refusal=probe if isinstance(probe, ResponseError) else None,
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
