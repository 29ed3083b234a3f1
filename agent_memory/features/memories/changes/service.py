"""Read the versions, evidence and changes of memories, and undo changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ulid import ULID

from agent_memory.features.memories.changes.store import DELETED, FORGOTTEN, ChangeStore, StoredChange
from agent_memory.features.memories.commit import MemoryCommits
from agent_memory.features.memories.records import StoredMemory, evidence_of, message_memory_id
from agent_memory.features.memories.store import MemoryStore
from agent_memory.foundation.core.errors import Conflict, NotFound
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.text.normalization import begins_at, ends_at
from agent_memory_client.models import (
    Change,
    ChangedMemory,
    ChangeListResponse,
    ChangeStateEnum,
    Evidence,
    EvidenceItem,
    MemoryEvidence,
    MemoryHistory,
    MemoryMessage,
    MemoryRecord,
    MemoryVersion,
)

_NO_NEWS = {"recorded_at", "retired_at", "updated_at", "persisted_at", "last_accessed", "access_count", "memory_hash"}


def diff(before: MemoryRecord | None, after: MemoryRecord | None) -> dict[str, list[Any]]:
    """Return [before, after] for each field that differs, except fields that the server sets."""
    old, new = (
        {} if record is None else record.model_dump(mode="json", exclude=_NO_NEWS, exclude_defaults=True) for record in (before, after)
    )
    return {name: [old.get(name), new.get(name)] for name in sorted({*old, *new}) if old.get(name) != new.get(name)}


Approval = Callable[[Scope, StoredChange], Awaitable[Mapping[str, Any]]]


class HistoryService:
    def __init__(self, store: MemoryStore, changes: ChangeStore, commits: MemoryCommits) -> None:
        self._store = store
        self._changes = changes
        self._commits = commits
        self._approvals: dict[str, Approval] = {}
        self.undo_forgetting: Callable[[Scope, str], Awaitable[Any]] | None = None
        """Undoes a forget request, given its receipt id. The feature that forgets data sets this function."""

    def register_approval(self, kind: str, approval: Approval) -> None:
        """Register `approval` for proposals that contain the key `kind`."""
        self._approvals[kind] = approval

    async def record_at(self, scope: Scope, memory_id: str, as_of: datetime | None, known_at: datetime | None) -> MemoryRecord:
        """Return the version known at `known_at` and true at `as_of`. Raises NotFound.

        If `known_at` is None, consider only the current version. If `as_of` is None, use `known_at`
        for both. If both are None, return the latest version, even if the memory has ended.
        """
        moment = as_of or known_at
        for memory in await self._versions(scope, memory_id):
            record = memory.record
            if moment is None:
                return record
            recorded = record.recorded_at or record.created_at
            was_recorded = record.retired_at is None if known_at is None else recorded <= known_at
            was_retired = known_at is not None and record.retired_at is not None and record.retired_at <= known_at
            ends = ends_at(record)
            if was_recorded and not was_retired and begins_at(record) <= moment and (ends is None or moment < ends):
                return record
        raise NotFound(f"Memory with ID {memory_id} not found at that time", field="memory_id")

    async def read_history(self, scope: Scope, memory_id: str) -> MemoryHistory:
        """Return a memory's changes and all its versions, newest first. Raises NotFound."""
        versions = await self._versions(scope, memory_id)
        if not versions:
            raise NotFound(f"Memory with ID {memory_id} not found", field="memory_id")
        ledger = await self._changes.load_ledger(versions[0].mid)
        older: list[MemoryRecord | None] = [*(memory.record for memory in versions[1:]), None]
        return MemoryHistory(
            memory_id=memory_id,
            versions=[
                MemoryVersion(
                    version=memory.version,
                    record=memory.record,
                    recorded_at=memory.record.recorded_at,
                    retired_at=memory.record.retired_at,
                    diff={} if before is None else diff(before, memory.record),
                )
                for memory, before in zip(versions, older, strict=True)
            ],
            changes=await self._render_changes(scope, await self._changes.load_changes(scope, list(reversed(ledger.changes)))),
        )

    async def count_versions(self, scope: Scope, memory_ids: Sequence[str]) -> list[int]:
        """Return the number of versions of each memory (1 for unknown ids)."""
        ledgers = await self._changes.load_ledgers([self._store.mid(scope, name) for name in memory_ids])
        return [1 + len(ledger.versions) for ledger in ledgers]

    async def _versions(self, scope: Scope, memory_id: str) -> list[StoredMemory]:
        mid = self._store.mid(scope, memory_id)
        versions = await self._versions_of(scope, mid)
        if not versions and (memory := (await self._store.find(scope, [memory_id]))[0]) is not None:
            versions = await self._versions_of(scope, memory.mid)
        return versions

    async def _versions_of(self, scope: Scope, mid: str) -> list[StoredMemory]:
        ledger = await self._changes.load_ledger(mid)
        current = (await self._store.find_by_mids(scope, [mid]))[0]
        past = await self._changes.load_versions(scope, [(mid, version) for version in reversed(ledger.versions)])
        return [memory for memory in (current, *past) if memory is not None]

    async def read_evidence(self, scope: Scope, memory_id: str) -> MemoryEvidence:
        """Return a memory's evidence and the cited messages that still exist. Raises NotFound."""
        memory = await self._store.require(scope, memory_id)
        own = evidence_of(memory.record)
        cited = {(piece.session_id, *piece.message_ids) for piece in own if piece.message_ids}
        later = [piece for piece in (await self._changes.load_evidence(memory.mid)).values() if piece.times is None]
        pieces = [*own, *(piece for piece in later if (piece.session_id, *piece.message_ids) not in cited)]
        memory_ids = {
            (piece.session_id, message): message_memory_id(
                SessionRef(piece.session_id or "", memory.record.namespace, memory.record.user_id), message
            )
            for piece in pieces
            for message in piece.message_ids
        }
        records = dict(zip(memory_ids, await self._store.get(scope, list(memory_ids.values())), strict=True))
        return MemoryEvidence(memory_id=memory_id, evidence=[_item(piece, records) for piece in pieces])

    async def read_changes(
        self, scope: Scope, values: dict[str, str], memory_id: str | None, offset: int, limit: int
    ) -> ChangeListResponse:
        """Return a page of changes, newest first. With `memory_id`, include only that memory's changes."""
        if memory_id is None:
            total, ids = await self._changes.find_changes(scope, values, offset, limit)
        else:
            every = (await self._changes.load_ledger(self._store.mid(scope, memory_id))).changes[::-1]
            if not await self._reached(scope, await self._changes.load_changes(scope, every[:1])):
                every = []  # The total must not reveal how many changes another owner's memory has.
            total, ids = len(every), every[offset : offset + limit]
        changes = await self._render_changes(scope, await self._changes.load_changes(scope, ids))
        return ChangeListResponse(changes=changes, total=total, next_offset=offset + limit if offset + limit < total else None)

    async def read_change(self, scope: Scope, change_id: str) -> Change:
        return (await self._render_changes(scope, [await self._require(scope, change_id)]))[0]

    async def read_existing(self, scope: Scope, change_ids: Sequence[str]) -> dict[str, Change]:
        """Return the changes that exist and that the caller may access, by id."""
        return {change.id: change for change in await self._render_changes(scope, await self._changes.load_changes(scope, change_ids))}

    async def undo_by_id(self, scope: Scope, change_id: str) -> Change:
        """Undo a change, and return the change that records the undo. Raises NotFound or Conflict."""
        name = await self._undo(scope, await self._require(scope, change_id), str(ULID()))
        return await self.read_change(scope, name)

    async def undo_batch(self, scope: Scope, batch_id: str) -> ChangeListResponse:
        """Undo a batch's applied changes, newest first.

        Raises NotFound, and Conflict at the first failure.
        """
        batch, undone = str(ULID()), list[str]()
        _, ids = await self._changes.find_changes(scope, {"bt": batch_id, "st": "applied"}, 0, 10_000)
        applied = await self._reached(scope, await self._changes.load_changes(scope, ids))
        if not applied:
            raise NotFound(f"Batch {batch_id} not found: it has no applied changes", field="batch_id")
        for change in sorted(applied, key=lambda change: (change.at, change.id), reverse=True):
            undone.append(await self._undo(scope, change, batch))
        changes = await self._render_changes(scope, await self._changes.load_changes(scope, undone[:100]))
        return ChangeListResponse(changes=changes, total=len(undone))

    async def _undo(self, scope: Scope, change: StoredChange, batch: str) -> str:
        """Undo a change, and return the id of the undo or the forget request."""
        if self.undo_forgetting is None or FORGOTTEN not in change.origin:
            return await self._changes.write_undo(scope, change, batch=batch)
        if change.state != "applied":
            raise Conflict(f"change {change.id} is {change.state}: only applied changes can be undone")
        await self.undo_forgetting(scope, change.id)
        return change.id

    async def approve_proposal(self, scope: Scope, change_id: str) -> Change:
        """Apply a proposal. Raises NotFound, and Conflict if it is invalid or outdated."""
        change = await self._require(scope, change_id)
        if change.proposal is None:
            raise Conflict(f"change {change_id} is not a proposal: only proposals can be approved")
        approval = next((self._approvals[kind] for kind in change.proposal if kind in self._approvals), None)
        if approval is not None:
            rendered = (await self._render_changes(scope, [change]))[0]
            decided = {"state": ChangeStateEnum.APPLIED, "decided_by": scope.actor or None}
            return rendered.model_copy(update=decided | dict(await approval(scope, change)))
        record, names = change.proposal["record"], list(change.proposal["old"])
        if (version := change.proposal.get("former")) is not None:
            names.append([record["id"], version])
        memories = await self._store.find(scope, [memory_id for memory_id, _ in names])
        read = [memory for memory, (_, at) in zip(memories, names, strict=True) if memory is not None and memory.version == at]
        former = read.pop() if version is not None and len(read) == len(names) else None
        complete = len(read) == len(change.proposal["old"]) and (former is None) is (version is None)
        if not complete or not await self._commits.commit_proposal(scope, change_id, read, record, former):
            raise Conflict(f"change {change_id} cannot be approved: a memory of it was changed since; reject it")
        return await self.read_change(scope, change_id)

    async def reject_proposal(self, scope: Scope, change_id: str) -> Change:
        await self._changes.end_proposal(scope, await self._require(scope, change_id))
        return await self.read_change(scope, change_id)

    async def _require(self, scope: Scope, change_id: str) -> StoredChange:
        reached = await self._reached(scope, await self._changes.load_changes(scope, [change_id]))
        if not reached:
            raise NotFound(f"Change {change_id} not found", field="change_id")
        return reached[0]

    async def _reached(self, scope: Scope, changes: Sequence[StoredChange | None]) -> list[StoredChange]:
        stored = [change for change in changes if change is not None]
        if scope.agents is None:
            return stored
        versions = await self._versions_in(scope, stored)
        return [change for change in stored if _reaches_change(scope, change, versions)]

    async def _versions_in(self, scope: Scope, changes: Sequence[StoredChange]) -> dict[tuple[str, str], StoredMemory | None]:
        names = [(mid, version) for change in changes for mid, *both in change.memories for version in both if version]
        return dict(zip(names, await self._changes.load_versions(scope, names), strict=True))

    async def _render_changes(self, scope: Scope, changes: Sequence[StoredChange | None]) -> list[Change]:
        stored = [change for change in changes if change is not None]
        versions = await self._versions_in(scope, stored)
        visible = [change for change in stored if _reaches_change(scope, change, versions)]
        named = list(dict.fromkeys(name for change in visible for name in _proposed_ids(change)))
        former = {
            name: memory.record for name, memory in zip(named, await self._store.find(scope, named), strict=True) if memory is not None
        }
        return [
            Change.model_validate(
                {
                    **change.origin,
                    "id": change.id,
                    "kind": change.kind.value,
                    "state": change.state,
                    "batch_id": change.batch,
                    "at": change.at,
                    "memories": [*_proposed(change, former), *_memories(change, versions)],
                }
            )
            for change in visible
        ]


def _reaches_change(scope: Scope, change: StoredChange, versions: dict[tuple[str, str], StoredMemory | None]) -> bool:
    if scope.agents is None:
        return True
    record = (change.proposal or {}).get("record")
    if record is not None:
        return record.get("agent_id") in scope.agents
    return any(versions.get((mid, version)) is not None for mid, *both in change.memories for version in both if version)


def _proposed_ids(change: StoredChange) -> list[str]:
    """Return the ids of memories that an open proposal would affect."""
    if change.proposal is None or change.state != "proposed":
        return []
    former = [change.proposal["record"]["id"]] if "former" in change.proposal else []
    return [*(name for name, _ in change.proposal.get("old", ())), *former, *change.proposal.get("forget", {}).get("ids", ())]


def _proposed(change: StoredChange, former: Mapping[str, MemoryRecord]) -> list[ChangedMemory]:
    """Return the memories that the proposal would change, or that the change deleted."""
    proposal = change.proposal or {}
    names = _proposed_ids(change)
    pairs: list[tuple[str, MemoryRecord | None, MemoryRecord | None]] = []
    if "record" in proposal:
        new = MemoryRecord.model_validate(proposal["record"], context={"answer": True})
        pairs.append((new.id, former.get(new.id) if new.id in names else None, new))
        names = [name for name in names if name != new.id]
    else:
        names = list(proposal.get("forget", {}).get("ids", change.origin.get(DELETED, ())))
    pairs += [(name, former.get(name), None) for name in names]
    return [ChangedMemory.model_construct(memory_id=name, before=old, after=new, diff=diff(old, new)) for name, old, new in pairs]


def _memories(change: StoredChange, versions: dict[tuple[str, str], StoredMemory | None]) -> list[ChangedMemory]:
    changed_memories: list[ChangedMemory] = []
    for mid, *both in change.memories:
        before, after = (None if (memory := versions.get((mid, version))) is None else memory.record for version in both)
        record = after or before
        if record is not None:
            changed_memories.append(
                ChangedMemory.model_construct(memory_id=record.id, before=before, after=after, diff=diff(before, after))
            )
    return changed_memories


def _item(piece: Evidence, records: dict[tuple[str | None, str], MemoryRecord | None]) -> EvidenceItem:
    messages = [_message(piece, message, record) for message in piece.message_ids if (record := records.get((piece.session_id, message)))]
    return EvidenceItem.model_construct(**{name: getattr(piece, name) for name in Evidence.model_fields}, messages=messages)


def _message(piece: Evidence, message: str, record: MemoryRecord) -> MemoryMessage:
    """Rebuild the cited message from its memory or, for an alias, from the evidence."""
    itself = message in (record.extracted_from or ()) and record.session_id == piece.session_id
    role, stated_at, words = (None, None, None) if itself else (piece.role, piece.at, piece.quote)
    return MemoryMessage.model_construct(
        role=role or str(record.metadata.get("role", "user")),
        content=words or record.text,
        id=message,
        created_at=(stated_at or record.created_at).astimezone(UTC),
        persisted_at=record.persisted_at,
        discrete_memory_extracted="t",
    )
