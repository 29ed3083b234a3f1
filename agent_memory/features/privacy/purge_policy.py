"""Decide how purging a source affects a memory. Pure functions, no I/O.

A purge deletes a memory if all its evidence comes from the source. Otherwise, the memory loses only
that evidence. If the source changed the content, the previous content is restored. When in
doubt, the purge deletes the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from pydantic import Field

from agent_memory.features.memories.changes.store import StoredChange
from agent_memory.features.memories.commit import UPKEEP, ChangeKind
from agent_memory.features.memories.records import TRUST, StoredMemory, evidence_of, source_of
from agent_memory.features.memories.write_decisions import remove_details
from agent_memory.features.privacy.lineage import LineageMemory
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.text.normalization import is_turn
from agent_memory_client.models import Evidence, MemoryRecord, PurgeRequest

Sources = Callable[[MemoryRecord, Evidence], Sequence[str]]
"""Returns the mids of the messages and memory that the evidence cites."""


class PurgeSource(PurgeRequest):
    """The source to purge. `agent_sessions` are the agent's sessions."""

    agent_sessions: frozenset[SessionRef] = Field(default=frozenset(), exclude=True)


@dataclass(frozen=True, slots=True)
class PurgeVerdict:
    """The effect of a purge on a memory. If `goes` is true, the entire memory is deleted."""

    memory: LineageMemory
    goes: bool = False
    matched: bool = False
    """True if a version matches the source itself instead of being derived from it."""
    back: StoredMemory | None = None
    """The version to make current again."""
    versions: tuple[int, ...] = ()
    """Former versions to delete, and the current version if `back` replaces it."""
    fields: tuple[str, ...] = ()
    """Fields of later evidence to delete."""
    names: tuple[str, ...] = ()
    """Aliases (mids) to delete with that evidence."""
    record: MemoryRecord | None = None
    """The current version without the deleted evidence, or None if it loses no evidence."""
    pieces: int = 0

    @property
    def idle(self) -> bool:
        return not (self.goes or self.back or self.versions or self.fields or self.record)


def matches(source: PurgeSource, record: MemoryRecord, imported: str | None) -> bool:
    """True if a memory meets all of the source's conditions."""
    if source.source_class is not None and source_of(record) not in source.source_class:
        return False
    if source.session_id is not None and record.session_id != source.session_id:
        return False
    if source.agent_id is not None and record.agent_id != source.agent_id and not names_session(source, _session_of(record)):
        return False
    if source.import_source is not None and imported != source.import_source:
        return False
    conditions = (source.metadata or {}).items()
    return all(name in record.metadata and _equal(record.metadata[name], value) for name, value in conditions)


def whole_import(source: PurgeRequest) -> str | None:
    """Return the import's name if the source is an entire import, otherwise None."""
    others = source.model_dump(exclude_none=True, exclude={"import_source", "unchanged"})
    return None if others else source.import_source


def _equal(value: object, condition: object) -> bool:
    return value == condition and isinstance(value, bool) is isinstance(condition, bool)


def names_session(source: PurgeSource, ref: SessionRef) -> bool:
    """True if the source covers this session."""
    if source.agent_id is not None and ref not in source.agent_sessions:
        return False
    return ref.session_id == source.session_id or (source.session_id is None and source.agent_id is not None)


def _session_of(record: MemoryRecord) -> SessionRef:
    return SessionRef(record.session_id or "", record.namespace, record.user_id)


def cites(source: PurgeSource, about: MemoryRecord, piece: Evidence) -> bool:
    """True if a piece of evidence comes from the source.

    A source with a condition on imports or metadata never matches evidence.
    """
    if source.import_source is not None or source.metadata is not None:
        return False
    if source.source_class is not None and piece.source not in source.source_class:
        return False
    if source.session_id is None and source.agent_id is None:
        return True
    return names_session(source, SessionRef(piece.session_id or "", about.namespace, about.user_id))


def judge(
    source: PurgeSource, memory: LineageMemory, tainted: Collection[str], changes: Sequence[StoredChange], sources: Sources
) -> PurgeVerdict:
    """Return how a purge that deletes the `tainted` mids affects a memory.

    A single tainted message taints its entire piece of evidence.
    """

    def is_poisoned(about: MemoryRecord, piece: Evidence) -> bool:
        return cites(source, about, piece) or any(mid in tainted for mid in sources(about, piece))

    versions = memory.versions
    about = versions[-1].record
    bad = {name: piece for name, piece in memory.pieces if is_poisoned(about, piece)}
    touched, carried = _touched_versions(memory.mid, bad, tainted, changes)
    # Later evidence that did not change the content confirms the memory independently.
    alone = [piece for name, piece in memory.pieces if name not in bad and name not in carried]
    own = {version.version: _own_evidence(source, version.record, memory.imported, is_poisoned) for version in versions}
    is_derived = [
        version.version in touched or (not own[version.version] and not _stays_by(source, version.record, memory, alone))
        for version in versions
    ]
    matched = any(matches(source, version.record, memory.imported) for version in versions)
    if is_derived[0]:
        return PurgeVerdict(memory, goes=True, matched=matched)
    first = next((position for position, derived in enumerate(is_derived) if derived), None)
    clean = versions[:first]
    texts = {version.record.text for version in clean}
    back: StoredMemory | None = None
    removed_versions = [
        version
        for version, derived in zip(versions, is_derived, strict=True)
        if derived or (first is not None and version.record.text not in texts)
    ]
    if memory.now is not None and memory.now in removed_versions:
        back = clean[-1]
    elif memory.now is None and memory.alias_of in tainted:
        back = [version for version in versions if version not in removed_versions][-1]
    # Former versions that quote deleted evidence are deleted too. A restored version is judged again.
    quoting = [
        version
        for version in memory.past
        if version is not back and any(is_poisoned(version.record, piece) for piece in version.record.evidence or ())
    ]
    names = tuple(mid for piece in bad.values() for mid in sources(about, piece) if mid != memory.mid)
    removed_ids = {version.version for version in (*removed_versions, *quoting)}
    record: MemoryRecord | None = None
    fields = tuple(bad)
    lost = len(bad)
    if back is None and memory.now is not None and memory.now not in removed_versions:
        record, moved, less = _without_source(source, memory, alone, is_poisoned)
        fields += tuple(name for name, piece in memory.pieces if piece in moved and name not in bad)
        lost += less
        if moved:
            # The record takes the evidence that these versions relied on.
            removed_ids |= {version.version for version in memory.past if not own[version.version]}
    ids = tuple(sorted(removed_ids))
    return PurgeVerdict(memory, matched=matched, back=back, versions=ids, fields=fields, names=names, record=record, pieces=lost)


def changed_since(memory: LineageMemory, changes: Sequence[StoredChange]) -> bool:
    """True if a memory has changed or ended since it was imported."""
    if memory.edited:
        return True
    applied = [change for change in changes if change.state == "applied" and change.origin.get("actor") not in UPKEEP]
    return any(mid == memory.mid and before for change in applied for mid, before, _ in change.memories)


def made_of(source: PurgeSource, record: MemoryRecord, tainted: Collection[str], sources: Sources) -> bool:
    """True if a record or all of its evidence comes from the source."""
    pieces = evidence_of(record)
    cited = [cites(source, record, piece) or any(mid in tainted for mid in sources(record, piece)) for piece in pieces]
    return matches(source, record, None) or all(cited)


def _touched_versions(
    mid: str, bad: Collection[str], tainted: Collection[str], changes: Sequence[StoredChange]
) -> tuple[set[int], set[str]]:
    """Return the versions created by the source and the evidence fields that changed content."""
    touched: set[int] = set()
    carried: set[str] = set()
    for change in changes:
        if change.state != "applied" or change.kind not in (ChangeKind.UPDATE, ChangeKind.SUPERSEDE, ChangeKind.MERGE):
            continue
        after = [int(last) for changed_mid, _, last in change.memories if changed_mid == mid and last]
        fields = {line[2] for line in change.lines if line[0] == "e" and line[1] == mid}
        others = {changed_mid for changed_mid, _, _ in change.memories if changed_mid != mid}
        if after:
            carried |= fields
        if not fields.isdisjoint(bad) or not others.isdisjoint(tainted):
            touched.update(after)
    return touched, carried


def _own_evidence(
    source: PurgeSource, record: MemoryRecord, imported: str | None, is_poisoned: Callable[[MemoryRecord, Evidence], bool]
) -> list[Evidence]:
    """Return a version's evidence from other sources, or [] if the version matches the source."""
    if matches(source, record, imported):
        return []
    return [piece for piece in evidence_of(record) if not is_poisoned(record, piece)]


def _stays_by(source: PurgeSource, record: MemoryRecord, memory: LineageMemory, alone: Sequence[Evidence]) -> bool:
    """True if independent evidence is enough to keep a version."""
    return bool(alone) and not is_turn(record) and not matches(source, _resting_on(source, record, alone), memory.imported)


def _resting_on(source: PurgeSource, record: MemoryRecord, pieces: Sequence[Evidence]) -> MemoryRecord:
    """Return a copy of the record with only the given evidence."""
    named = [piece.source for piece in pieces if piece.source is not None]
    least = min(named, key=lambda source_class: TRUST[source_class], default=None)
    update: dict[str, object] = {"evidence": list(pieces)}
    if least is not None:
        update |= {"source_class": least, "trust": TRUST[least]}
    if names_session(source, _session_of(record)):
        update["session_id"] = pieces[0].session_id
    return record.model_copy(update=update)


def _without_source(
    source: PurgeSource, memory: LineageMemory, alone: Sequence[Evidence], is_poisoned: Callable[[MemoryRecord, Evidence], bool]
) -> tuple[MemoryRecord | None, Sequence[Evidence], int]:
    """Remove the source's evidence from the current version.

    Return the new record (None if unchanged), the later evidence it now relies on, and the number
    of pieces removed.
    """
    assert memory.now is not None
    record = memory.now.record
    written = record.evidence or []
    left = _own_evidence(source, record, memory.imported, is_poisoned)
    if not left and not is_turn(record):
        # The memory's tags and metadata may come from the source, so only later ones stay.
        return remove_details(_resting_on(source, record, alone), memory.versions[0].record), alone, max(len(written), 1)
    lost = len(written) - len(left) if written else 0
    return (record.model_copy(update={"evidence": left}), (), lost) if lost else (None, (), 0)
