"""What a move would come to, without a write: for a dry run, as exactly as the move itself would say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from agent_memory.core.errors import IdTaken
from agent_memory.core.scope import Scope, SessionRef
from agent_memory.memories.owners import with_session_owner
from agent_memory.memories.records import WORDS, Standing, memory_digest, standing
from agent_memory.memories.store import MemoryStore
from agent_memory.memories.writing import repeats
from agent_memory.sessions.store import SessionWrite
from agent_memory.text.normalization import ends_at, is_plain, is_turn
from agent_memory.text.time_expressions import names_relative_time
from agent_memory.transfer.archived_server.progress import ExistingDigests, MoveStore
from agent_memory_client.models import MemoryRecord, MemoryTypeEnum


@dataclass(frozen=True, slots=True)
class _PreviewedRecord:
    """A record that is looked at: its name in keys, what makes it the same, its place among others, and what of it is here."""

    record: MemoryRecord
    mid: str
    digest: str
    place: Standing
    here: ExistingDigests


class MigrationPreview:
    """Remembers what the run would have written so far: what comes later meets that, too."""

    def __init__(self, moves: MoveStore, memories: MemoryStore) -> None:
        self._moves = moves
        self._memories = memories
        self._digests: dict[str, str] = {}
        self._records: dict[str, MemoryRecord] = {}
        self._by: dict[tuple[str, str], str] = {}
        self.sessions: dict[SessionRef, set[str]] = {}
        """The messages of sessions that would be here by now."""

    async def states(self, scope: Scope, records: Sequence[MemoryRecord]) -> list[str]:
        """What `settling.adopt_settled` would answer, had the run written what it would have."""
        coming = [
            _PreviewedRecord(record, self._memories.mid(scope, record.id), memory_digest(record), standing(scope.tenant, record), here)
            for record, here in zip(records, await self._moves.here(scope, records), strict=True)
        ]
        await self._read_holders(scope, coming)
        others = set(await self._memories.taken_ids(scope, records))
        states = [""] * len(coming)
        # In the order in which they are adopted; what has the words of another is settled when all the others are there.
        twins: list[tuple[int, MemoryRecord]] = []
        for place in sorted(range(len(coming)), key=lambda place: records[place].created_at):
            one = coming[place]
            states[place] = self._state(one, of_another=one.record.id in others)
            if not states[place] and (twin := self._twin(one)) is not None:
                twins.append((place, twin))
            elif not states[place]:
                states[place] = self._put(one)
        for place, twin in sorted(twins, key=lambda pair: pair[0]):
            one = coming[place]
            if repeats(one.record, twin):
                self._digests[one.mid] = one.digest
                states[place] = "repeat"
            else:
                states[place] = self._put(one)
        return states

    def knows(self, scope: Scope, memory_id: str) -> bool:
        """Whether a memory of this id would be here by now."""
        return self._memories.mid(scope, memory_id) in self._digests

    async def permit(self, scope: Scope, ref: SessionRef, change: SessionWrite) -> None:
        """Raises IdTaken for memories of a session whose id belongs to another owner, as its write would."""
        placed = [(place, with_session_owner(ref, change.memories[place])) for place in change.waiting]
        taken = set(await self._memories.taken_ids(scope, [record for _, record in placed]))
        for place, record in placed:
            if record.id in taken:
                raise IdTaken([record.id], field=f"memories.{place}.id")

    async def _read_holders(self, scope: Scope, coming: Sequence[_PreviewedRecord]) -> None:
        """Reads the memories here that have the words of some of these, once."""
        mids = {mid for one in coming for mid in one.here.holders.values()} - self._records.keys()
        names = sorted(mids)
        for mid, found in zip(names, await self._memories.load_by_names(scope, names), strict=True):
            if found is not None:
                self._records[mid] = found.record
        for one in coming:
            for name, mid in one.here.holders.items():
                self._by.setdefault((one.place.scope, name), mid)

    def _state(self, one: _PreviewedRecord, *, of_another: bool) -> str:
        """What stands in the way of a record by its id, which may be `of_another` owner; "" when nothing does."""
        if one.here.buried:
            return "buried"
        if of_another:
            return "other"
        known = self._digests.get(one.mid, one.here.digest)
        if known is not None:
            return "same" if known == one.digest else "other"
        return "same" if one.here.alias == one.digest else ""

    def _held(self, one: _PreviewedRecord, name: str) -> MemoryRecord | None:
        """The other memory that has the words of a record under a name."""
        mid = self._by.get((one.place.scope, name)) if name else None
        return None if mid is None or mid == one.mid else self._records.get(mid)

    def _twin(self, one: _PreviewedRecord) -> MemoryRecord | None:
        """The memory beside which a statement is not written; messages of sessions have their own place."""
        record = one.record
        in_session = record.memory_type is MemoryTypeEnum.MESSAGE and record.session_id is not None
        if in_session or record.quarantine is not None or not one.place.kin:
            return None
        kin = self._held(one, one.place.kin)
        return kin if kin is not None else self._held(one, one.place.words)

    def _put(self, one: _PreviewedRecord) -> str:
        """Writes it down, unless it is a message in words that are known already: that becomes their evidence."""
        self._digests[one.mid] = one.digest
        if self._said_before(one):
            return "repeat"
        record, place = one.record, one.place
        self._records[one.mid] = record.model_copy(update={"text": "-"})
        if record.quarantine is not None or place_ended(record):
            return "new"
        for name in filter(None, (place.kin, place.words)):
            if place.kin:
                self._by.setdefault((place.scope, name), one.mid)
            else:
                # Of what was said, the last time counts.
                self._by[place.scope, name] = one.mid
        return "new"

    def _said_before(self, one: _PreviewedRecord) -> bool:
        record = one.record
        if not is_turn(record) or not is_plain(record) or record.quarantine is not None:
            return False
        statement = self._held(one, WORDS + one.place.words[1:])
        if statement is not None and ends_at(statement) is None:
            return True
        turn = self._held(one, one.place.words)
        if turn is None or ends_at(turn) is not None:
            return False
        same_day = int(turn.created_at.timestamp() // 86400) == int(record.created_at.timestamp() // 86400)
        same_role = str(turn.metadata.get("role")) == str(record.metadata.get("role"))
        return same_role and (same_day or not names_relative_time(record.text))


def place_ended(record: MemoryRecord) -> bool:
    """Whether a memory goes to the history as soon as it is written: its time is over."""
    ends = ends_at(record)
    return ends is not None and ends <= datetime.now(UTC)
