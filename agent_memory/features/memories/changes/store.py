"""Read and undo recorded changes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from redis.asyncio import Redis
from redisvl.query import FilterQuery
from redisvl.query.filter import Num
from ulid import ULID

from agent_memory.features.memories.commit import ChangeKind, ChangeOrigin, change_base, change_fields, claim_change
from agent_memory.features.memories.records import READ_FIELDS, StoredEvidence, StoredMemory, evidence_of, read_row
from agent_memory.features.memories.steps import MemoryScripts, order_of
from agent_memory.foundation.api.principals import administering
from agent_memory.foundation.core.errors import Conflict
from agent_memory.foundation.core.permissions import within
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.storage.connection import read, write
from agent_memory.foundation.storage.keyspace import Keys, tag, untag
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.indexes import change_index_name
from agent_memory.foundation.storage.search.pagination import walk
from agent_memory.foundation.storage.search.queries import name_query, search
from agent_memory.foundation.storage.search.syntax import all_of
from agent_memory_client.models import ANSWER, MemoryRecord

FORGOTTEN = "forgotten"
"""The key in a change's `origin` for the counts of a forget request."""
DELETED = "deleted"
"""The key in a change's `origin` for the ids of memories deleted without versions."""
CONVERSATION = "conversation"
"""The actor of changes that a user requested in a conversation."""


@dataclass(frozen=True, slots=True)
class StoredChange:
    id: str
    kind: ChangeKind
    state: str
    batch: str
    at: datetime
    origin: dict[str, Any]
    lines: list[list[str]]
    proposal: dict[str, Any] | None = None

    @property
    def memories(self) -> list[tuple[str, str, str]]:
        """The changed memories as (mid, version before, version after). "" means no version."""
        moved = [line[1:] for line in self.lines if line[0] == "m"]
        return [(mid, "" if before == "-" else before, "" if after == "-" else after) for mid, before, after in moved]


@dataclass(frozen=True, slots=True)
class Ledger:
    """A memory's earlier versions, alias mids and change ids."""

    versions: list[str]
    aliases: list[str]
    changes: list[str]


class ChangeStore:
    def __init__(self, client: Redis, keys: Keys, scripts: MemoryScripts) -> None:
        self._client = client
        self._keys = keys
        self._scripts = scripts

    async def load_changes(self, scope: Scope, ids: Sequence[str]) -> list[StoredChange | None]:
        """Return the change for each id, or None if it is missing or inaccessible."""
        names = ["t", "kd", "st", "bt", "at", "o", "i", "ns", "u", "p"]
        rows = await read(self._client, lambda pipe: [pipe.hmget(self._keys.change(change_id), names) for change_id in ids])
        return [_stored(scope, change_id, row) for change_id, row in zip(ids, rows, strict=True)]

    async def find_changes(self, scope: Scope, values: dict[str, str], offset: int, limit: int) -> tuple[int, list[str]]:
        """Return the number of matching changes and a page of their ids.

        `values` maps field names from `commit.change_base` to required values.
        """
        clause = all_of(filters.where(scope), *(filters.is_value(name, value) for name, value in values.items()))
        hits = await search(self._client, change_index_name(self._keys), name_query(clause, offset, limit, sort_by=("at", "DESC")))
        return hits.total, [hit.mid for hit in hits.hits]

    async def find_forgettings(self, before: datetime, offset: int, limit: int) -> list[tuple[str, str]]:
        """Return (tenant, change id) for forget requests applied before `before`, oldest first."""
        clause = filters.is_value("kd", ChangeKind.FORGET.value) & filters.is_value("st", "applied") & (Num("at") < before.timestamp())
        query = FilterQuery(clause, return_fields=["t"], sort_by=("at", "ASC"))
        query.paging(offset, limit)
        hits = await search(self._client, change_index_name(self._keys), query)
        return [(untag(hit.fields[b"t"].decode()), hit.mid) for hit in hits.hits]

    async def load_ledger(self, mid: str) -> Ledger:
        return (await self.load_ledgers([mid]))[0]

    async def load_ledgers(self, mids: Sequence[str]) -> list[Ledger]:
        rows = await read(self._client, lambda pipe: [pipe.zrange(self._keys.ledger(mid), 0, -1) for mid in mids])
        named = [[member.decode() for member in row] for row in rows]
        return [
            Ledger(
                [m for m in members if m.isdigit()],
                [m[1:] for m in members if m.startswith("a")],
                [m[1:] for m in members if m.startswith("c")],
            )
            for members in named
        ]

    async def load_versions(self, scope: Scope, names: Sequence[tuple[str, str]]) -> list[StoredMemory | None]:
        """Return the memory for each (mid, version), or None if it is missing or inaccessible."""
        past, now = self._keys.history, self._keys.memory
        keys = [key for mid, version in names for key in (past(f"{mid}.{version}"), now(mid), past(mid))]
        rows = await read(self._client, lambda pipe: [pipe.hmget(key, READ_FIELDS) for key in keys])

        def parse(mid: str, version: str, candidates: Sequence[Sequence[bytes | None]]) -> StoredMemory | None:
            memories = (read_row(scope.tenant, mid, row) for row in candidates)
            named = (memory for memory in memories if memory is not None and str(memory.version) == version)
            return next((memory for memory in named if within(scope, memory.record)), None)

        return [parse(mid, version, rows[3 * index : 3 * index + 3]) for index, (mid, version) in enumerate(names)]

    async def load_evidence(self, mid: str) -> dict[str, StoredEvidence]:
        """Return evidence added after the memory was written, keyed by hash field."""
        values = (await read(self._client, lambda pipe: pipe.hgetall(self._keys.evidence(mid))))[0]
        return {name.decode(): StoredEvidence.model_validate_json(value) for name, value in values.items()}

    async def write_undo(self, scope: Scope, change: StoredChange, *, batch: str) -> str:
        """Undo an applied change, and return the id of the undo.

        Raises Conflict, and Forbidden if only an administrator may undo the change.
        """
        if change.state != "applied":
            raise Conflict(f"change {change.id} is {change.state}: only applied changes can be undone")
        names = [(mid, version) for mid, *both in change.memories for version in both if version]
        versions = {name: memory for name, memory in zip(names, await self.load_versions(scope, names), strict=True) if memory is not None}
        group = [claim_change(scope, change.id, "applied", "undone")]
        group += [{"op": "unalias", "alias": line[1]} for line in change.lines if line[0] == "a"]
        group += [
            {"op": "alias", "alias": line[1], "mid": line[2], "digest": " ".join(line[3:])} for line in change.lines if line[0] == "u"
        ]
        group += [{"op": "forget_evidence", "mid": line[1], "field": line[2]} for line in change.lines if line[0] == "e"]
        about: MemoryRecord | None = None
        for mid, before, after in reversed(change.memories):
            memory = versions.get((mid, before)) or versions.get((mid, after))
            if memory is None or any(version and (mid, version) not in versions for version in (before, after)):
                raise Conflict(f"change {change.id} cannot be undone: a memory of it was deleted")
            about = about or memory.record
            quarantines = [versions[mid, version].record.quarantine for version in (before, after) if version]
            if quarantines[-1] and not quarantines[0]:
                administering(scope)  # The undo would release the memory from quarantine.
            order = order_of(self._keys, scope.tenant, memory.record)
            group.append({"op": "restore", "mid": mid, "from": before, "to": after, **({"order": order} if order else {})})
        if about is None:
            raise Conflict(f"change {change.id} has nothing to undo")
        origin = ChangeOrigin(scope.actor or "undo", f"undoes {change.id}")
        fields = change_fields(scope.tenant, about, ChangeKind.UNDO, origin, batch, "applied")
        name = str(ULID())
        undo = {"id": name, "fields": fields, "mids": [mid for mid, _, _ in change.memories]}
        if (await self._scripts.run_group(scope.tenant, *group, change=undo))[0] != "ok":
            raise Conflict(f"change {change.id} cannot be undone: a memory of it was changed since, undo that first")
        return name

    async def record_forgetting(
        self, scope: Scope, owner: tuple[str | None, str | None], name: str, counts: Mapping[str, int], until: datetime | None, **about: Any
    ) -> None:
        """Record a forget request and its undo deadline, but not the forgotten content.

        `name` is the receipt id. `about` adds fields to the change's origin.
        """
        namespace, user_id = owner
        origin = {"actor": scope.actor or CONVERSATION, FORGOTTEN: dict(counts), "receipt_id": name, "user_id": user_id}
        origin |= {"namespace": namespace, "undo_until": None if until is None else until.isoformat(), **about}
        fields = change_base(scope.tenant, ChangeKind.FORGET, ChangeOrigin(""), name, "applied")
        fields[-1] = json.dumps(origin)
        fields += [part for field, value in (("ns", namespace), ("u", user_id)) if value for part in (field, tag(value))]
        await self._scripts.run_group(scope.tenant, change={"id": name, "fields": fields, "mids": []})

    async def end_forgetting(self, scope: Scope, name: str) -> None:
        """Mark a recorded forget request as undone. `name` is the receipt id."""
        await self._scripts.run_group(scope.tenant, claim_change(scope, name, "applied", "undone"))

    async def forgettings(self, scope: Scope) -> AsyncIterator[list[str]]:
        """Yield pages of the receipt ids of the tenant's forget requests, oldest first."""
        clause = all_of(filters.where(Scope(scope.tenant)), filters.is_value("kd", ChangeKind.FORGET.value))
        async for names in walk(self._client, change_index_name(self._keys), clause, "at"):
            yield names

    async def erase_forgettings(self, scope: Scope, namespace: str | None, user_id: str) -> None:
        """Delete the records of a user's forget requests."""
        values = {"kd": ChangeKind.FORGET.value, "u": user_id} | ({} if namespace is None else {"ns": namespace})
        clause = all_of(filters.where(scope), *(filters.is_value(name, value) for name, value in values.items()))
        async for names in walk(self._client, change_index_name(self._keys), clause, "at"):
            for change in await self.load_changes(scope, names):
                if change is not None and FORGOTTEN in change.origin:
                    await self.delete_record(change.id)

    async def delete_record(self, change_id: str) -> None:
        """Delete a change that contains no memories."""
        await write(self._client, lambda pipe: pipe.delete(self._keys.change(change_id)))

    async def end_proposal(self, scope: Scope, change: StoredChange) -> None:
        """Reject a proposal. Raises Conflict if it is not open."""
        if (await self._scripts.run_group(scope.tenant, claim_change(scope, change.id, "proposed", "rejected")))[0] != "ok":
            raise Conflict(f"change {change.id} is not a proposal any more: read it again")

    async def end_proposals(
        self, scope: Scope, namespace: str | None, user_id: str | None, matches: Callable[[MemoryRecord], bool]
    ) -> Counter[str]:
        """Reject open proposals to store a matching memory, and count them.

        A `namespace` or `user_id` of None matches any value. A proposal that a reviewer decides
        in the meantime is skipped. Call this before you delete the stored memories.
        """
        values = {"st": "proposed"} | {name: value for name, value in (("ns", namespace), ("u", user_id)) if value is not None}
        tenant = Scope(scope.tenant)
        clause = all_of(filters.where(tenant), *(filters.is_value(name, value) for name, value in values.items()))
        counts: Counter[str] = Counter()
        async for names in walk(self._client, change_index_name(self._keys), clause, "at"):
            for change in await self.load_changes(tenant, names):
                record = None if change is None else proposed_record(change.proposal)
                if change is not None and record is not None and matches(record):
                    with suppress(Conflict):
                        await self.end_proposal(tenant, change)
                        counts["proposals"] += 1
        return counts

    async def end_session_proposals(self, scope: Scope, session: SessionRef, *, current: Collection[str] = ()) -> Counter[str]:
        """Reject open proposals made of a session's messages, and count them.

        If `current` is set, keep proposals that cite one of these messages.
        """

        def matches(record: MemoryRecord) -> bool:
            if (record.namespace, record.user_id) != (session.namespace, session.user_id):
                return False
            pieces = [piece for piece in evidence_of(record) if piece.session_id == session.session_id]
            cited = {message for piece in pieces for message in piece.message_ids}
            return bool(pieces or record.session_id == session.session_id) and cited.isdisjoint(current)

        return await self.end_proposals(scope, session.namespace, session.user_id, matches)


def proposed_record(proposal: Mapping[str, Any] | None) -> MemoryRecord | None:
    """Return the memory that a proposal would store, or None if there is none or it is unreadable."""
    if proposal is None or "record" not in proposal:
        return None
    try:
        return MemoryRecord.model_validate(proposal["record"], context=ANSWER)
    except ValueError:  # Nobody can approve an unreadable proposal.
        return None


def _stored(scope: Scope, change_id: str, row: Sequence[bytes | None]) -> StoredChange | None:
    owner, kind, state, batch, at, origin, lines, namespace, user, proposal = (None if value is None else value.decode() for value in row)
    if owner != tag(scope.tenant) or kind is None or state is None or batch is None or at is None:
        return None
    if not scope.reaches(None if namespace is None else untag(namespace), None if user is None else untag(user)):
        return None
    return StoredChange(
        change_id,
        ChangeKind(untag(kind)),
        untag(state),
        untag(batch),
        datetime.fromtimestamp(float(at), UTC),
        json.loads(origin or "{}"),
        [line.split(" ") for line in (lines or "").splitlines()],
        None if proposal is None else json.loads(proposal),
    )
