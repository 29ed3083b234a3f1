"""Identify a store by a marker in each bucket's configuration. A file in an embedded Redis' data directory copies it.

A Redis without the marker lost its volume, was emptied by FLUSHALL, or is another Redis.
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.storage.connection import redis_errors
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.lua_files import load
from agent_memory.foundation.storage.round_trip import exchange
from agent_memory.foundation.storage.scripts import Script

log = logging.getLogger(__name__)

FILE_NAME = "store.json"

_PROBE = load("storage/marker_probe")


@dataclass(frozen=True, slots=True)
class StoreState:
    """The state of a store at one moment. Times are in ms of Redis' clock."""

    id: str | None
    made_ms: int
    lost: str | None
    """Id of the store that Redis held before it was found empty. None once an operator accepted the loss."""
    accepted: int
    """Time when an operator last accepted the content of Redis as the store."""
    now: int
    indexes: frozenset[str]
    refusal: Exception | None


class StoreFile:
    """A file in a data directory with the ids of its stores, by the root of their keys."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME

    def id_of(self, keys: Keys) -> str | None:
        """Return the id of the store that the directory held, or None. Raises StartupError for an unreadable file."""
        return self._read().get(keys.root)

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
            # Redis has the marker, too. The next look tries to write the file again.
            log.warning("cannot write the file %s: %s", self.path, error.strerror or error)

    def _read(self) -> dict[str, str]:
        try:
            ids: Any = json.loads(self.path.read_text())
            return {str(name): str(value) for name, value in ids.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError) as error:
            raise StartupError(f"{self.path}, which names the store in this directory, cannot be read: {error}") from error


async def open_marker(client: Redis, keys: Keys, noted_id: str | None) -> None:
    """Mark a new store. If `noted_id` names a store that was here, note its loss instead."""
    await Script(client, "storage/marker_open")(config=keys.config, new_id=token_hex(8), lost_id=noted_id)


async def note_loss(client: Redis, keys: Keys, store_id: str) -> None:
    """Store the id of the lost store in an empty Redis."""
    await Script(client, "storage/marker_lose")(config=keys.config, store_id=store_id)


async def accept_marker(client: Redis, keys: Keys) -> None:
    """Accept the current content of Redis as the store."""
    await Script(client, "storage/marker_accept")(config=keys.config, new_id=token_hex(8))


async def see(client: Redis, keys: Keys, *, touch: str = "") -> StoreState:
    """Return the state of the store. Raises RedisUnavailable.

    With `touch`, a store's id, also write a few bytes if Redis holds this store, which tests Redis' log file.
    """
    with redis_errors():
        row, time, listed, probe = await exchange(
            client,
            [
                ("HMGET", keys.config, "store", "made", "lost", "accepted"),
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
        now=int(time[0]) * 1000 + int(time[1]) // 1000,
        indexes=frozenset(name.decode() for name in listed or ()),
        refusal=probe if isinstance(probe, ResponseError) else None,
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
