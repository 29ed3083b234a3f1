"""Which store this is: a marker in each bucket's configuration, and its copy beside the data of an embedded Redis.

A Redis that comes back without its marker has lost its data: its volume, by FLUSHALL, or because it is another Redis.
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

from agent_memory.errors import StartupError
from agent_memory.storage.connection import redis_errors
from agent_memory.storage.indexes import some_index
from agent_memory.storage.keys import Keys
from agent_memory.storage.wire import exchange

log = logging.getLogger(__name__)

FILE_NAME = "store.json"

# Of several processes that start at the same moment one makes the marker. ARGV: a new id, and that of the store that must be there ("").
_OPEN = """#!lua
local id = redis.call('HGET', KEYS[1], 'store')
if id or redis.call('HEXISTS', KEYS[1], 'lost') == 1 then return end
if ARGV[2] ~= '' then
  redis.call('HSET', KEYS[1], 'lost', ARGV[2])
else
  local now = redis.call('TIME')
  redis.call('HSET', KEYS[1], 'store', ARGV[1], 'made', now[1] * 1000 + math.floor(now[2] / 1000))
end
"""
# ARGV: the id of a store that is gone. Who starts later and never knew it learns that it was there.
_LOSE = """#!lua
if redis.call('HEXISTS', KEYS[1], 'store') == 0 then redis.call('HSETNX', KEYS[1], 'lost', ARGV[1]) end
"""
# ARGV: a new id, for a Redis that holds no store.
_ACCEPT = """#!lua
local now = redis.call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
if redis.call('HSETNX', KEYS[1], 'store', ARGV[1]) == 1 then redis.call('HSET', KEYS[1], 'made', ms) end
redis.call('HSET', KEYS[1], 'accepted', ms)
redis.call('HDEL', KEYS[1], 'lost')
"""
# Redis looks whether it may write before it runs a script that could, and says why not; this one writes only when it is told to, what is
# there already: that goes to the log file, and nothing changes. ARGV: the id that the store must have for it, or "".
_PROBE = """#!lua
if ARGV[1] ~= '' and redis.call('HGET', KEYS[1], 'store') == ARGV[1] then redis.call('HSET', KEYS[1], 'store', ARGV[1]) end
return 1
"""


@dataclass(frozen=True, slots=True)
class Sight:
    """What Redis says of its store at one time (ms, Redis' clock), the names of all its indexes, and why it refuses writes."""

    id: str | None
    made: int
    lost: str | None
    """The store that was here before Redis was found empty, until an operator accepts that."""
    accepted: int
    """When an operator last accepted what Redis holds."""
    now: int
    indexes: frozenset[str]
    refusal: Exception | None


class StoreFile:
    """The ids of the stores in a data directory, by the prefix of their keys."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME

    def id_of(self, keys: Keys) -> str | None:
        """The store that was here, None when there was none. Raises StartupError for a file that cannot be read."""
        return self._read().get(keys.root)

    def note(self, keys: Keys, store_id: str) -> None:
        """Writes down which store is here."""
        known = self._read()
        if known.get(keys.root) == store_id:
            return
        fresh = self.path.with_suffix(".new")
        try:
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                json.dump({**known, keys.root: store_id}, file)
            fresh.replace(self.path)
        except OSError as error:
            # Redis' own marker is there; this copy is made at the next look.
            log.warning("the file %s cannot be written: %s", self.path, error.strerror or error)

    def _read(self) -> dict[str, str]:
        try:
            found: Any = json.loads(self.path.read_text())
            return {str(name): str(value) for name, value in found.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError) as error:
            raise StartupError(f"{self.path}, which names the store in this directory, cannot be read: {error}") from error


async def open_marker(client: Redis, keys: Keys, known: str | None) -> None:
    """Gives a store that has no marker one: a new store, and one of a version that made none.

    `known` is the store that was here, as far as anybody knows. If nothing is left of it, its loss is noted instead.
    """
    there = known is not None and await some_index(client, keys)
    # What is there without a marker where one was known is a copy from before there were markers, put back.
    await _run(client, _OPEN, keys, known if known is not None and there else token_hex(8), "" if there else known or "")


async def note_loss(client: Redis, keys: Keys, store_id: str) -> None:
    """Writes into a Redis without a store which one was there."""
    await _run(client, _LOSE, keys, store_id)


async def accept_marker(client: Redis, keys: Keys) -> None:
    """Makes what Redis holds the store, whatever it held before."""
    await _run(client, _ACCEPT, keys, token_hex(8))


async def see(client: Redis, keys: Keys, *, touch: str = "") -> Sight:
    """One look at the store, in one round trip whatever it holds; `touch` is the id for which the log file is written to, too.

    Raises RedisUnavailable.
    """
    with redis_errors():
        row, time, listed, probe = await exchange(
            client,
            [
                ("HMGET", keys.config, "store", "made", "lost", "accepted"),
                ("TIME",),
                ("FT._LIST",),
                ("EVAL", _PROBE, 1, keys.config, touch),
            ],
        )
        for reply in (row, time, listed):
            if isinstance(reply, Exception):
                raise reply
    return Sight(
        id=_text(row[0]),
        made=int(row[1] or 0),
        lost=_text(row[2]),
        accepted=int(row[3] or 0),
        now=int(time[0]) * 1000 + int(time[1]) // 1000,
        indexes=frozenset(name.decode() for name in listed or ()),
        refusal=probe if isinstance(probe, ResponseError) else None,
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


async def _run(client: Redis, script: str, keys: Keys, *args: str) -> None:
    with redis_errors():
        reply = (await exchange(client, [("EVAL", script, 1, keys.config, *args)]))[0]
        if isinstance(reply, Exception):
            raise reply
