"""Read the archived server's Redis page by page, using SCAN. Never write to it.

`working_memory:[namespace:][user:]session`     JSON document, or a string of the same JSON (early releases)
`memory_idx:<id>`                               hash, with the vector as float32 bytes
`summary_view:<id>:config`, `summary_view:<id>:summary:<group>`   JSON
`auth_token:<bcrypt>`                           JSON; cannot be migrated, because it does not contain the token
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.storage.connection import Pipe, connect, read, redis_errors

_READS = {b"hash": "HGETALL", b"string": "GET", b"ReJSON-RL": "JSON.GET"}
_READ_ONLY_FLAGS = ("migration:complete", "migration:remaining")


class OldKind(StrEnum):
    MEMORY = "memory"
    SESSION = "session"
    VIEW = "view"
    PARTITION = "partition"
    TOKEN = "token"


@dataclass(frozen=True, slots=True)
class OldPrefixes:
    """The archived server's key prefixes. The trailing colon is optional."""

    memories: str = "memory_idx"
    sessions: str = "working_memory:"

    def of(self, kind: OldKind) -> bytes:
        names = {OldKind.MEMORY: self.memories, OldKind.SESSION: self.sessions, OldKind.TOKEN: "auth_token"}
        return names.get(kind, "summary_view").rstrip(":").encode() + b":"


@dataclass(frozen=True, slots=True)
class OldItem:
    """A key without its prefix, and its content or a `problem`.

    `seconds_left` is None if the key does not expire.
    """

    name: str
    fields: dict[bytes, bytes] | None = None
    document: bytes | None = None
    seconds_left: int | None = None
    problem: str | None = None


class OldStore:
    def __init__(self, client: Redis, prefixes: OldPrefixes, *, ours: str, source: str) -> None:
        """`ours` is the prefix of this server's own keys, which are skipped.

        `source` is the name of the import.
        """
        self._client = client
        self._prefixes = prefixes
        self._ours = ours.encode()
        self.source = source

    async def count(self, kind: OldKind) -> int:
        """Return the approximate number of keys of this kind."""
        return sum([len(names) async for names in self._scan(kind, 1000)])

    async def pages(self, kind: OldKind, size: int) -> AsyncIterator[list[OldItem]]:
        """Yield pages of items of this kind. Raises RedisUnavailable or StartupError."""
        async for names in self._scan(kind, size):
            if names:
                yield await self._read(kind, names)

    async def _scan(self, kind: OldKind, size: int) -> AsyncIterator[list[bytes]]:
        prefix = self._prefixes.of(kind)
        match = prefix.translate(bytes.maketrans(b"*?[]^\\", b"??????")) + b"*"
        cursor: int | None = None
        while cursor != 0:
            at = cursor or 0
            reply = (await read(self._client, lambda pipe, at=at: pipe.scan(at, match=match, count=size)))[0]
            names = [name for name in reply[1] if name.startswith(prefix) and not name.startswith(self._ours)]
            yield [name for name in dict.fromkeys(names) if _is(kind, name.removeprefix(prefix))]
            cursor = int(reply[0])

    async def _read(self, kind: OldKind, names: Sequence[bytes]) -> list[OldItem]:
        def about(pipe: Pipe) -> None:
            for name in names:
                pipe.type(name)
                pipe.pttl(name)

        abouts = await read(self._client, about)
        async with self._client.pipeline(transaction=False) as pipe:
            for name, form in zip(names, abouts[::2], strict=True):
                pipe.execute_command(_READS.get(form, "EXISTS"), name)
            with redis_errors():
                replies = await pipe.execute(raise_on_error=False)
        items: list[OldItem] = []
        for name, form, left, reply in zip(names, abouts[::2], abouts[1::2], replies, strict=True):
            display_name = name.removeprefix(self._prefixes.of(kind)).decode("utf-8", "replace")
            items.append(_item(kind, display_name, form, int(left), reply))
        return items


def _is(kind: OldKind, rest: bytes) -> bool:
    """True if a key is of this kind. `rest` is the key without its prefix."""
    if kind is OldKind.VIEW:
        return rest.endswith(b":config")
    if kind is OldKind.PARTITION:
        return b":summary:" in rest
    return not (kind is OldKind.SESSION and rest.decode("utf-8", "replace") in _READ_ONLY_FLAGS)


def _item(kind: OldKind, name: str, form: bytes, left: int, reply: Any) -> OldItem:
    seconds = max(round(left / 1000), 1) if left >= 0 else None
    if isinstance(reply, ResponseError) and form == b"ReJSON-RL":
        raise StartupError(f"the old Redis cannot read its JSON documents: {str(reply)[:120]}")
    if isinstance(reply, Exception):
        raise reply
    if form == b"none" or reply is None or left == -2:
        return OldItem(name, problem="it expired while it was being read")
    if form == b"hash":
        if kind is OldKind.MEMORY:
            return OldItem(name, fields=reply, seconds_left=seconds)
    elif form in (b"string", b"ReJSON-RL") and kind is not OldKind.MEMORY:
        return OldItem(name, document=reply if isinstance(reply, bytes) else str(reply).encode(), seconds_left=seconds)
    return OldItem(name, problem=f"a key of type {form.decode('ascii', 'replace')} is not a {kind.value}")


@asynccontextmanager
async def open_old(url: str, display_url: str, prefixes: OldPrefixes, *, ours: str, command_timeout: float) -> AsyncGenerator[OldStore]:
    """Open the archived server's Redis for reading. Raises StartupError.

    `display_url` is the URL without credentials.
    """
    client = connect(url, pool_size=4, command_timeout=command_timeout)
    try:
        try:
            await client.ping()
        except (RedisError, OSError) as error:
            raise StartupError(f"cannot reach the old Redis at {display_url}: {str(error)[:200]}") from error
        names = f"{display_url}\n{prefixes.memories.rstrip(':')}\n{prefixes.sessions.rstrip(':')}"
        yield OldStore(client, prefixes, ours=ours, source=f"archived-{blake2b(names.encode(), digest_size=5).hexdigest()}")
    finally:
        await client.aclose()
