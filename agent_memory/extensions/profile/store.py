"""Store profiles in Redis."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha1
from typing import Any, NamedTuple

from redis.asyncio import Redis

from agent_memory.extensions.profile.entries import FollowedMemory
from agent_memory.features.memories.records import StoredEvidence, decode_memory
from agent_memory.foundation.storage.connection import Pipe, read, redis_errors
from agent_memory.foundation.storage.keyspace import Keys, digest, tag, untag
from agent_memory.foundation.storage.scripts import Script
from agent_memory_client.models.features.profile import ProfileMove, ProfileSchema

PAGE = 16
MOST_SHOWN = 64
"""Limit on stored static entries, and on stored dynamic entries."""
STATE = ("t", "j", "n", "ls", "ts", "nt")


class ProfileOwner(NamedTuple):
    """A user in one namespace, or in no namespace if it is None."""

    tenant: str
    namespace: str | None
    user_id: str

    @property
    def name(self) -> str:
        return digest("profile", self.tenant, self.namespace, self.user_id)

    @property
    def user_key(self) -> str:
        return digest("profiles", self.tenant, self.user_id)


class ReadMemory(NamedTuple):
    """A memory read from Redis, if it exists. The scripts skip it if its `state` has changed."""

    mid: str
    state: Sequence[str]
    memory: FollowedMemory | None = None
    over: bool = False
    """True if the memory has ended."""


@dataclass(frozen=True, slots=True)
class ProfilePages:
    """A profile's static entries, dynamic entries and slots.

    These are (static until, entry), (last mention, entry) and (slot, entry) pairs. Times are in
    seconds since 1970.
    """

    static: Sequence[tuple[float, Mapping[str, Any]]] = ()
    dynamic: Sequence[tuple[float, Mapping[str, Any]]] = ()
    slots: Sequence[tuple[str, Mapping[str, Any]]] = ()
    version: int = 0


class ProfileKeys:
    def __init__(self, root: str) -> None:
        self._root = root

    def profile(self, owner: str) -> str:
        """Return a profile's main key. Its other keys append ":" and a letter."""
        return f"{self._root}pf:{owner}"

    def schemas(self, tenant: str) -> str:
        return f"{self._root}pfx:{digest('profile schema', tenant)}"


class OwnerStore(ABC):
    """Stores data derived from each owner's memories."""

    def __init__(self, client: Redis, keys: Keys, follow: Script, clear: Script, users: str) -> None:
        """Create a store. `users` is the prefix of the keys that list each user's owners."""
        self._client = client
        self._keys = keys
        self._users = users
        self._follow = follow
        self._clear = clear

    @abstractmethod
    async def read_memories(self, mids: Sequence[str]) -> list[ReadMemory]:
        """Return memories with their evidence, in one round trip."""

    async def follow(self, items: Sequence[Mapping[str, Any]]) -> list[bool]:
        """Update the data. Return False for each memory that has changed since it was read."""
        reply = await self._follow(self._keys, items=items, **self._stamps()) if items else []
        return [bool(done) for done in reply]

    def _stamps(self) -> Mapping[str, str]:
        return {}

    async def clear(self, owner: ProfileOwner, *, rebuilds: bool = False) -> None:
        """Delete an owner's data.

        If `rebuilds` is set, the caller must call `end_rebuild` afterward.
        """
        await self._clear(self._keys, owner=owner.name, user_key=owner.user_key, rebuilds=rebuilds)

    async def end_rebuild(self, owner: ProfileOwner) -> None:  # noqa: B027 - only profiles have something to finish.
        """Finish a rebuild."""

    async def owners_of(self, tenant: str, user_id: str) -> list[ProfileOwner]:
        """Return a user's owners, one for each namespace that has data."""
        key = f"{self._keys.root}{self._users}:{digest('profiles', tenant, user_id)}"
        (rows,) = await read(self._client, lambda pipe: pipe.hvals(key))
        return [ProfileOwner(tenant, untag(namespace.decode()) or None, user_id) for namespace in rows]


class ProfileStore(OwnerStore):
    def __init__(self, client: Redis, keys: Keys) -> None:
        super().__init__(client, keys, Script(client, "profile/profile_follow"), Script(client, "profile/profile_clear"), "pfu")
        self._profile_keys = ProfileKeys(keys.root)
        self._rebuilt = Script(client, "profile/profile_rebuilt")
        self._lapse = Script(client, "profile/profile_lapse")

    async def read_memories(self, mids: Sequence[str]) -> list[ReadMemory]:

        def build(pipe: Pipe) -> None:
            for mid in mids:
                pipe.hmget(self._keys.memory(mid), STATE)
                pipe.hgetall(self._keys.evidence(mid))

        replies = await read(self._client, build) if mids else []
        return [decode_followed(mid, *replies[2 * index : 2 * index + 2]) for index, mid in enumerate(mids)]

    async def end_rebuild(self, owner: ProfileOwner) -> None:
        """Finish a rebuild, and record which entries it moved."""
        await self._rebuilt(self._keys, owner=owner.name)

    async def note_lapses(self, most: int) -> int:
        """Record moves for lapsed entries. Return the number of profiles, at most `most`."""
        return int(await self._lapse(self._keys, most=most))

    def queue_pages(self, pipe: Pipe, owner: ProfileOwner, limit: int, *, slots: bool = True) -> None:
        """Queue a read of a profile. `parse_pages` parses its single reply."""
        pages = range(-(-min(limit, MOST_SHOWN) // PAGE))
        names = ["v", *(f"s{page}" for page in pages), *(f"d{page}" for page in pages), *(["l"] if slots else [])]
        pipe.hmget(f"{self._profile_keys.profile(owner.name)}:r", names)

    async def read_profile(self, owner: ProfileOwner, limit: int) -> tuple[ProfilePages, ProfileSchema | None]:
        """Return a profile, and the schema of its namespace or tenant."""

        def build(pipe: Pipe) -> None:
            self.queue_pages(pipe, owner, limit)
            pipe.hmget(self._profile_keys.schemas(owner.tenant), _schema_fields(owner.namespace))

        pages, schemas = await read(self._client, build)
        return parse_pages(pages, limit), _narrowest(schemas)

    async def read_moves(self, owner: ProfileOwner, limit: int) -> list[ProfileMove]:
        (rows,) = await read(self._client, lambda pipe: pipe.lrange(f"{self._profile_keys.profile(owner.name)}:h", 0, limit - 1))
        return [_move(row.decode()) for row in rows]

    async def load_schema(self, tenant: str, namespace: str | None) -> ProfileSchema | None:
        """Return the namespace's schema, or else the tenant's, or else None."""
        (rows,) = await read(self._client, lambda pipe: pipe.hmget(self._profile_keys.schemas(tenant), _schema_fields(namespace)))
        return _narrowest(rows)

    async def save_schema(self, tenant: str, namespace: str | None, schema: ProfileSchema | None) -> None:
        """Store the schema of a namespace, or the tenant's if `namespace` is None.

        If `schema` is None, delete it.
        """
        key, name = self._profile_keys.schemas(tenant), _schema_field(namespace)
        with redis_errors():
            if schema is None:
                await self._client.hdel(key, name)
            else:
                await self._client.hset(key, name, schema.model_dump_json())


def parse_pages(reply: Sequence[bytes | None], limit: int, *, slots: bool = True) -> ProfilePages:
    """Parse the reply to `queue_pages`."""
    pages = -(-min(limit, MOST_SHOWN) // PAGE)
    version, *rest = reply
    static, dynamic = ([line for page in rest[start : start + pages] if page for line in _entries(page)] for start in (0, pages))
    values = [line.split(b" ", 1) for line in (rest[-1] or b"").split(b"\n") if line] if slots else []
    return ProfilePages(static, dynamic, [(untag(slot.decode()), json.loads(entry)) for slot, entry in values], int(version or 0))


# A user's next prompt reads the same pages, so the cache saves 0.1 ms of CPU.
@lru_cache(maxsize=512)
def _entries(page: bytes) -> Sequence[tuple[float, Mapping[str, Any]]]:
    """Parse a page. The result is cached and shared, so callers must not modify it."""
    lines = [line.split(b" ", 1) for line in page.split(b"\n") if line]
    return [(float(number), json.loads(entry)) for number, entry in lines]


def owner_of(memory: FollowedMemory | None) -> ProfileOwner | None:
    """Return the owner of a memory's profile, or None if the memory has no user."""
    if memory is None or memory.record.user_id is None:
        return None
    return ProfileOwner(memory.tenant, memory.record.namespace, memory.record.user_id)


def followed_item(read: ReadMemory, values: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a memory as a script argument. If `values` is None, the scripts remove the memory."""
    owner = owner_of(read.memory)
    item: dict[str, Any] = {"mid": read.mid, "state": list(read.state)}
    if owner is None or values is None:
        return item
    return item | {"owner": owner.name, "user_key": owner.user_key, "namespace": tag(owner.namespace or "")} | dict(values)


def decode_followed(mid: str, row: Sequence[bytes | None], evidence: Mapping[bytes, bytes]) -> ReadMemory:
    owner, raw, *checked = row
    if owner is None or raw is None or checked[0] is None:
        return ReadMemory(mid, ())
    state = [*((value or b"").decode() for value in checked), str(len(evidence)), sha1(raw, usedforsecurity=False).hexdigest()]
    _, last, times, outdated = checked
    memory = FollowedMemory(
        mid,
        untag(owner.decode()),
        decode_memory(raw),
        None if last is None else float(last),
        1 if times is None else int(times),
        outdated is not None,
        [StoredEvidence.model_validate_json(piece) for _, piece in sorted(evidence.items())],
    )
    return ReadMemory(mid, state, memory)


def _move(row: str) -> ProfileMove:
    at, before, after, memory_id = row.split(" ", 3)
    moment = datetime.fromtimestamp(int(at) / 1000, UTC)
    return ProfileMove(memory_id=memory_id, at=moment, before=None if before == "-" else before, after=None if after == "-" else after)


def _schema_field(namespace: str | None) -> str:
    return "*" if namespace is None else tag(namespace)


def _schema_fields(namespace: str | None) -> list[str]:
    return list(dict.fromkeys([_schema_field(namespace), _schema_field(None)]))


def _narrowest(rows: Sequence[bytes | None]) -> ProfileSchema | None:
    raw = next((row for row in rows if row is not None), None)
    return None if raw is None else ProfileSchema.model_validate_json(raw)
