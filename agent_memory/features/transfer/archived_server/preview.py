"""Predict exactly what a migration would do, without writing anything. Used by the dry run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from agent_memory.features.memories.records import WORDS, Standing, memory_digest, standing, with_session_owner
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.write_decisions import repeats
from agent_memory.features.sessions.session_write import SessionWrite
from agent_memory.features.transfer.archived_server.progress import ExistingDigests, MoveStore
from agent_memory.foundation.core.errors import IdTaken
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.text.dates.relative import same_meaning
from agent_memory.foundation.text.normalization import ends_at, is_plain, is_turn
from agent_memory_client.models import MemoryRecord, MemoryTypeEnum


@dataclass(frozen=True, slots=True)
class _PreviewedRecord:
    record: MemoryRecord
    mid: str
    digest: str
    standing: Standing
    here: ExistingDigests


class MigrationPreview:
    """Records what the run would have written before the current item, because later items depend on it."""

    def __init__(self, moves: MoveStore, memories: MemoryStore) -> None:
        self._moves = moves
        self._memories = memories
        self._digests: dict[str, str] = {}
        self._records: dict[str, MemoryRecord] = {}
        self._by: dict[tuple[str, str], str] = {}
        self.sessions: dict[SessionRef, set[str]] = {}
        """The message identities of the sessions that the run would already have written."""

    async def states(self, scope: Scope, records: Sequence[MemoryRecord]) -> list[str]:
        """Return the states that `adopt_settled` would return if the run had written all earlier items."""
        coming = [
            _PreviewedRecord(record, self._memories.mid(scope, record.id), memory_digest(record), standing(scope.tenant, record), here)
            for record, here in zip(records, await self._moves.here(scope, records), strict=True)
        ]
        await self._read_holders(scope, coming)
        others = set(await self._memories.taken_ids(scope, records))
        states = [""] * len(coming)
        # `adopt_settled` writes in this order. It decides repeats last, when all other memories exist.
        twins: list[tuple[int, MemoryRecord]] = []
        for position in sorted(range(len(coming)), key=lambda position: records[position].created_at):
            preview = coming[position]
            states[position] = self._state(preview, of_another=preview.record.id in others)
            if not states[position] and (twin := self._twin(preview)) is not None:
                twins.append((position, twin))
            elif not states[position]:
                states[position] = self._settle_new(preview)
        for position, twin in sorted(twins, key=lambda pair: pair[0]):
            preview = coming[position]
            if repeats(preview.record, twin):
                self._digests[preview.mid] = preview.digest
                states[position] = "repeat"
            else:
                states[position] = self._settle_new(preview)
        return states

    def knows(self, scope: Scope, memory_id: str) -> bool:
        """True if the run would have written a memory with this id."""
        return self._memories.mid(scope, memory_id) in self._digests

    async def permit(self, scope: Scope, ref: SessionRef, change: SessionWrite) -> None:
        """Raise IdTaken if the id of one of the session's waiting memories belongs to another owner."""
        placed = [(position, with_session_owner(ref, change.memories[position])) for position in change.waiting]
        taken_ids = set(await self._memories.taken_ids(scope, [record for _, record in placed]))
        for position, record in placed:
            if record.id in taken_ids:
                raise IdTaken([record.id], field=f"memories.{position}.id")

    async def _read_holders(self, scope: Scope, coming: Sequence[_PreviewedRecord]) -> None:
        mids = {mid for preview in coming for mid in preview.here.holders.values()} - self._records.keys()
        names = sorted(mids)
        for mid, stored in zip(names, await self._memories.load_by_names(scope, names), strict=True):
            if stored is not None:
                self._records[mid] = stored.record
        for preview in coming:
            for name, mid in preview.here.holders.items():
                self._by.setdefault((preview.standing.scope, name), mid)

    def _state(self, preview: _PreviewedRecord, *, of_another: bool) -> str:
        """Return the record's state if its id alone determines the state, or "" otherwise."""
        if preview.here.buried:
            return "buried"
        if of_another:
            return "other"
        digest = self._digests.get(preview.mid, preview.here.digest)
        if digest is not None:
            return "same" if digest == preview.digest else "other"
        return "same" if preview.here.alias == preview.digest else ""

    def _holder_of(self, preview: _PreviewedRecord, name: str) -> MemoryRecord | None:
        mid = self._by.get((preview.standing.scope, name)) if name else None
        return None if mid is None or mid == preview.mid else self._records.get(mid)

    def _twin(self, preview: _PreviewedRecord) -> MemoryRecord | None:
        """Return the memory that a record would duplicate, or None. Messages in sessions are never duplicates."""
        record = preview.record
        in_session = record.memory_type is MemoryTypeEnum.MESSAGE and record.session_id is not None
        if in_session or record.quarantine is not None or not preview.standing.kin:
            return None
        kin = self._holder_of(preview, preview.standing.kin)
        return kin if kin is not None else self._holder_of(preview, preview.standing.words)

    def _settle_new(self, preview: _PreviewedRecord) -> str:
        """Record a memory as written. Return "repeat" for a message with the same words as a known memory, and "new" otherwise."""
        self._digests[preview.mid] = preview.digest
        if self._said_before(preview):
            return "repeat"
        record, stands, ends = preview.record, preview.standing, ends_at(preview.record)
        self._records[preview.mid] = record.model_copy(update={"text": "-"})
        if record.quarantine is not None or (ends is not None and ends <= datetime.now(UTC)):
            return "new"
        for name in filter(None, (stands.kin, stands.words)):
            if stands.kin:
                self._by.setdefault((stands.scope, name), preview.mid)
            else:
                # Of several messages with the same words, the last one counts.
                self._by[stands.scope, name] = preview.mid
        return "new"

    def _said_before(self, preview: _PreviewedRecord) -> bool:
        record = preview.record
        if not is_turn(record) or not is_plain(record) or record.quarantine is not None:
            return False
        statement = self._holder_of(preview, WORDS + preview.standing.words[1:])
        if statement is not None and ends_at(statement) is None:
            return True
        turn = self._holder_of(preview, preview.standing.words)
        if turn is None or ends_at(turn) is not None:
            return False
        within = same_meaning(record.text, record.created_at)
        same_time = within is None or within[0] <= turn.created_at < within[1]
        same_role = str(turn.metadata.get("role")) == str(record.metadata.get("role"))
        return same_role and same_time
