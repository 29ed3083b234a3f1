"""Export and restore changes. Exports refer to memories by id."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from redis.asyncio import Redis

from agent_memory.features.jobs.erasure_orders import Erasure
from agent_memory.features.memories.changes.store import FORGOTTEN, ChangeStore, StoredChange
from agent_memory.features.memories.commit import ChangeKind
from agent_memory.features.transfer.memory_export import MemoryExport, MemoryExportReader
from agent_memory.features.transfer.restore import Restorer
from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import read
from agent_memory.foundation.storage.keyspace import Keys, tag
from agent_memory.foundation.storage.scripts import compact
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.indexes import change_index_name
from agent_memory.foundation.storage.search.pagination import walk
from agent_memory.foundation.storage.search.syntax import all_of

# The positions of memory names in a change's line, by the line's first word.
_NAMES = {"m": (1,), "a": (1, 2), "e": (1,), "u": (1, 2)}


@dataclass(frozen=True, slots=True)
class ChangeExport:
    """A change whose lines refer to memories by id."""

    change: StoredChange
    namespace: str | None
    memories: Sequence[str]
    lines: Sequence[Sequence[str]]


class ChangeTransfer:
    def __init__(self, client: Redis, keys: Keys, changes: ChangeStore, reader: MemoryExportReader, restorer: Restorer) -> None:
        self._client = client
        self._keys = keys
        self._changes = changes
        self._reader = reader
        self._restorer = restorer

    async def pages(self, scope: Scope, erasure: Erasure, until: int) -> AsyncIterator[list[ChangeExport]]:
        """Yield pages of the user's changes up to the time `until` (µs), oldest first."""
        owner = (("ns", erasure.namespace), ("u", erasure.user_id or ""))
        clause = all_of(filters.where(scope), *(filters.is_value(name, value) for name, value in owner if value is not None))
        index = change_index_name(self._keys)
        async for ids in walk(self._client, index, clause, "at", high=until / 1e6):
            yield await self._read(scope, ids)

    async def _read(self, scope: Scope, ids: Sequence[str]) -> list[ChangeExport]:
        loaded = await self._changes.load_changes(scope, ids)
        rows = await read(self._client, lambda pipe: [pipe.hmget(self._keys.change(change), ["ms", "ns"]) for change in ids])
        # Proposals and requests to forget are only for this store's reviewers, so they are not exported.
        present = [
            (change, *row)
            for change, row in zip(loaded, rows, strict=True)
            if change is not None
            and FORGOTTEN not in change.origin
            and not (change.kind is ChangeKind.FORGET and change.proposal is not None)
        ]
        mids: set[str] = set()
        for change, memories, _ in present:
            mids.update((memories or b"").decode().split())
            for line in change.lines:
                mids.update(line[at] for at in _NAMES.get(line[0], ()) if at < len(line))
        names = await self._reader.ids(scope, sorted(mids))
        exports: list[ChangeExport] = []
        for change, memories, namespace in present:
            about = [names[mid] for mid in (memories or b"").decode().split() if mid in names]
            lines = [named for line in change.lines if (named := _with_ids(line, names)) is not None]
            exports.append(ChangeExport(change, None if namespace is None else bytes.fromhex(namespace.decode()).decode(), about, lines))
        return exports

    async def restore(self, scope: Scope, user_id: str, export: ChangeExport) -> Literal["new", "same", "other"]:
        """Restore a change.

        Raises BadInput unless all memories in the change exist and belong to the user, because
        undoing the change edits them.
        """
        ids = dict.fromkeys([*export.memories, *(line[at] for line in export.lines for at in _NAMES[line[0]])])
        mids = {name: self._restorer.mid(scope, name) for name in ids}
        own = await self._check(scope, user_id, list(mids.values()))
        agent_id = next((memory.any.agent_id for memory in own.values() if memory.any.agent_id), None)
        change = export.change
        lines = "\n".join(" ".join(with_names(line, mids.__getitem__)) for line in export.lines)
        fields = ["t", tag(scope.tenant), "kd", tag(change.kind.value), "bt", tag(change.batch), "st", tag(change.state)]
        fields += ["o", compact(change.origin), "at", f"{change.at.timestamp():.6f}", "i", lines, "u", tag(user_id)]
        fields += [part for name, value in (("ns", export.namespace), ("ag", agent_id)) if value for part in (name, tag(value))]
        fields += ["p", compact(change.proposal)] if change.proposal is not None else []
        return await self._restorer.restore_change(
            scope, (export.namespace, user_id), change.id, fields, [mids[name] for name in export.memories], change.at.timestamp()
        )

    async def _check(self, scope: Scope, user_id: str, mids: Sequence[str]) -> dict[str, MemoryExport]:
        """Return the memories by mid. Raises BadInput if any is missing or not the user's."""
        erasure = Erasure(scope.tenant, None, user_id, None)
        own = await self._reader.read(scope, erasure, mids)
        left = [mid for mid in mids if mid not in own]

        aliases = await read(self._client, lambda pipe: [pipe.get(self._keys.alias(mid)) for mid in left])
        targets = [None if raw is None else raw.decode().partition(" ")[0] for raw in aliases]
        owned = await self._reader.read(scope, erasure, [mid for mid in targets if mid is not None])
        if any(mid is None or mid not in owned for mid in targets):
            raise BadInput("it names a memory that is not here or is not this user's", field="memories")
        return own | owned


def _with_ids(line: Sequence[str], names: dict[str, str]) -> list[str] | None:
    line = [word for word in line if word]
    positions = _NAMES.get(line[0], ())
    if any(at < len(line) and line[at] not in names for at in positions):
        return None
    return [names[word] if at in positions else word for at, word in enumerate(line)]


def with_names(line: Sequence[str], named: Callable[[str], str]) -> list[str]:
    """Replace each memory id in a line with the result of `named`."""
    positions = _NAMES[line[0]]
    return [named(word) if at in positions else word for at, word in enumerate(line)]


def checked_line(line: Any) -> list[str]:
    """Validate a change's line and return its words. Raises BadInput."""
    words: list[Any] = line if isinstance(line, list) else []
    if not words or words[0] not in _NAMES or not all(isinstance(word, str) and word for word in words):
        raise BadInput("is not a line of a change", field="lines")
    plain = [word for at, word in enumerate(words) if at not in _NAMES[words[0]]]
    shapes = {"m": len(words) == 4, "a": len(words) == 3, "e": len(words) == 3, "u": len(words) in (3, 4)}
    if not shapes[words[0]] or not all(word == "-" or (word.isascii() and word.isalnum()) for word in plain):
        raise BadInput("is not a line of a change", field="lines")
    return words
