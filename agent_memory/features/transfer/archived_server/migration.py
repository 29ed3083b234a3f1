"""Migrate the Redis of an archived server through this server's own write path.

A migration supports a dry run, and can be resumed and repeated. It never changes data that exists here, and never
restores data that was deleted here. If a session changes on the archived server after its migration, a later run
migrates it again, unless the session has also changed on this server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, ValidationError

from agent_memory.features.memories.commit import MemoryCommits
from agent_memory.features.memories.quarantine.service import screen_caller_record
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.write_decisions import adopt_settled
from agent_memory.features.sessions.codec import message_identity
from agent_memory.features.sessions.session_write import MovedSession, NewMessage, SessionWrite
from agent_memory.features.sessions.store import SessionStore
from agent_memory.features.transfer.archived_server.layout import OldItem, OldKind, OldStore
from agent_memory.features.transfer.archived_server.preview import MigrationPreview
from agent_memory.features.transfer.archived_server.progress import MovedRecord, MoveStore
from agent_memory.features.transfer.archived_server.records import (
    OldMemory,
    OldSession,
    UnmovableRecord,
    memory_of_hash,
    partition_of,
    session_of,
    view_of,
)
from agent_memory.features.transfer.archived_server.values import first_problem
from agent_memory.foundation.core.errors import IdTaken, ModelAnswerInvalid, ModelUnavailable, VersionMismatch
from agent_memory.foundation.core.feature import ArchivedSummaries
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.base import Embedder
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory_client.models import MemoryTypeEnum

# Items per page. Sessions can be large, so their pages are short.
_PAGES = {OldKind.MEMORY: 200, OldKind.SESSION: 25, OldKind.VIEW: 50, OldKind.PARTITION: 50}
_KINDS = list(_PAGES)
_LISTED = 1000
_PROBES = 2
# Vectors of one text by the same model differ only by rounding. Vectors by two models are unrelated.
_SAME_MODEL = 0.98


class MigrationCounts(BaseModel):
    """Counts of items of one kind, by result. `there` counts items that already exist on this server.

    `other` counts items whose id already exists on this server with different content.
    """

    read: int = 0
    written: int = 0
    merged: int = 0
    there: int = 0
    deleted_here: int = 0
    other: int = 0
    skipped: int = 0
    changed: int = 0


class MigrationRemark(BaseModel):
    kind: str
    id: str
    reason: str


class Report(BaseModel):
    """What a migration did or, in a dry run, would do."""

    dry_run: bool
    finished: bool = False
    resumed: bool = False
    counts: dict[str, MigrationCounts] = Field(default_factory=lambda: {kind.value: MigrationCounts() for kind in _KINDS})
    vectors_reused: int = 0
    vectors_to_embed: int = 0
    tokens: int = 0
    skipped: list[MigrationRemark] = Field(default_factory=list[MigrationRemark])
    changed: list[MigrationRemark] = Field(default_factory=list[MigrationRemark])


class _Progress(BaseModel):
    run_id: str
    done: list[OldKind] = Field(default_factory=list[OldKind])
    kind: OldKind = OldKind.MEMORY
    cursor: int = 0
    report: Report


@dataclass(frozen=True, slots=True)
class MoveOptions:
    """Options for a migration.

    `vectors` is `auto` (compare some old vectors with the model's own), `reuse` (trust all old vectors) or `embed`
    (compute all vectors again). If `extract` is true, facts are extracted from messages for which the archived server
    extracted none. `restart` ignores earlier progress.
    """

    dry_run: bool = True
    vectors: Literal["auto", "reuse", "embed"] = "auto"
    extract: bool = True
    restart: bool = False
    page: int | None = None


OnProgress = Callable[[OldKind, int, int], None]
"""Called with the kind, the number of items read in this run, and their approximate total."""


@dataclass(slots=True)
class MigrationService:
    settings: Settings
    old: OldStore
    moves: MoveStore
    memories: MemoryStore
    decisions: MemoryCommits
    sessions: SessionStore
    summaries: Sequence[ArchivedSummaries]
    embedder: Embedder
    counter: TokenCounter
    extracts: bool
    preview: MigrationPreview = field(init=False)

    async def run(self, scope: Scope, options: MoveOptions, on_progress: OnProgress | None = None) -> Report:
        """Migrate everything, or in a dry run, report what would happen.

        Raises RedisUnavailable. Run the migration again after this error.
        """
        progress = await self._begin(options)
        self.preview = MigrationPreview(self.moves, self.memories)
        report = progress.report
        for kind in _KINDS:
            if kind in progress.done:
                continue
            if kind is not progress.kind:
                progress.kind, progress.cursor = kind, 0
            total, processed = await self.old.count(kind), 0
            if on_progress:
                on_progress(kind, 0, total)
            while True:
                progress.cursor, items = await self.old.page(kind, progress.cursor, options.page or _PAGES[kind])
                brought = await self._move_page(scope, kind, items, report, options)
                if progress.cursor == 0:  # Saved together with the counts, so that a finished kind is not counted again.
                    progress.done.append(kind)
                if items and not options.dry_run:
                    await self.moves.save(self.old.source, progress.model_dump_json(), brought)
                processed += len(items)
                if on_progress:
                    on_progress(kind, processed, max(total, processed))
                if progress.cursor == 0:
                    break
        report.tokens = await self.old.count(OldKind.TOKEN)
        report.finished = True
        if not options.dry_run:
            await self.moves.save(self.old.source, progress.model_dump_json())
        return report

    async def _begin(self, options: MoveOptions) -> _Progress:
        run_id = await self.old.run_id()
        stored = None if options.dry_run or options.restart else await self.moves.load(self.old.source)
        with suppress(ValidationError):  # Another release may have written it. Starting again is harmless.
            progress = _Progress.model_validate_json(stored or b"")
            if progress.run_id == run_id and not progress.report.finished:
                progress.report.resumed = True
                return progress
        return _Progress(run_id=run_id, report=Report(dry_run=options.dry_run))

    async def _move_page(
        self, scope: Scope, kind: OldKind, items: Sequence[OldItem], report: Report, options: MoveOptions
    ) -> dict[bytes, MovedRecord]:
        counts = report.counts[kind.value]
        counts.read += len(items)
        for item in items:
            if item.problem is not None:
                _skip(report, kind, item.name, item.problem)
        usable = [item for item in items if item.problem is None]
        if kind is OldKind.MEMORY:
            await self._move_memories(scope, usable, report, options)
            return {}
        earlier = await self.moves.brought(self.old.source, [item.digest for item in usable])
        brought: dict[bytes, MovedRecord] = {}
        for item, before in zip(usable, earlier, strict=True):
            print_ = blake2b(item.document or b"", digest_size=8).hexdigest()
            if before is not None and before.fingerprint == print_:
                counts.there += 1
                continue
            try:
                if kind is OldKind.SESSION:
                    version = await self._move_session(scope, item, before, report, options)
                else:
                    version = await self._move_summaries(scope, kind, item, report, options)
            except UnmovableRecord as error:
                _skip(report, kind, item.name, str(error))
                continue
            brought[item.digest] = MovedRecord(print_, version)
        return brought

    async def _move_memories(self, scope: Scope, items: Sequence[OldItem], report: Report, options: MoveOptions) -> None:
        memories: dict[str, OldMemory] = {}
        for item in items:
            try:
                memory = memory_of_hash(item.name, item.fields or {})
            except UnmovableRecord as error:
                _skip(report, OldKind.MEMORY, item.name, str(error))
                continue
            if memory.record.id in memories:
                _skip(report, OldKind.MEMORY, memory.record.id, "two keys have this id; the first one was used")
                continue
            memories[memory.record.id] = memory
        records = [screen_caller_record(self.settings, memory.record) for memory in memories.values()]
        states = await (
            self.preview.states(scope, records) if options.dry_run else adopt_settled(self.memories, self.decisions, scope, records)
        )
        counts = report.counts[OldKind.MEMORY.value]
        arrived: list[OldMemory] = []
        for memory, state in zip(memories.values(), states, strict=True):
            match state:
                case "new":
                    counts.written += 1
                    arrived.append(memory)
                    _note_changes(report, OldKind.MEMORY, memory.record.id, memory.notes)
                case "same":
                    counts.there += 1
                    arrived.append(memory)  # A killed run may have written the memory without its vector.
                case "repeat":
                    counts.merged += 1
                    reason = "a memory here says the same: this memory became its evidence, and this id its alias"
                    _note_remark(report.changed, OldKind.MEMORY, memory.record.id, reason)
                case "buried":
                    counts.deleted_here += 1
                case _:
                    counts.other += 1
                    reason = "this id already exists here with different content, which was not changed"
                    _note_remark(report.skipped, OldKind.MEMORY, memory.record.id, reason)
        new = sum(state == "new" for state in states)
        usable = await self._vectors(arrived, options)
        reused = sum(memory.record.id in usable for memory, state in zip(memories.values(), states, strict=True) if state == "new")
        if not options.dry_run:
            await self.moves.give_vectors(
                scope, [(memory.record, usable[memory.record.id]) for memory in arrived if memory.record.id in usable]
            )
        report.vectors_reused += reused
        report.vectors_to_embed += new - reused

    async def _vectors(self, memories: Sequence[OldMemory], options: MoveOptions) -> dict[str, NDArray[np.float32]]:
        """Return the usable old vectors by memory id.

        A vector is usable if it comes from the current model and covers only the memory's own text.
        """
        usable: dict[str, NDArray[np.float32]] = {}
        for memory in memories if options.vectors != "embed" else ():
            in_session = memory.record.memory_type is MemoryTypeEnum.MESSAGE and memory.record.session_id is not None
            if memory.vector is None or in_session or len(memory.vector) != 4 * self.embedder.dimensions:
                continue
            vector = np.frombuffer(memory.vector, dtype="<f4").astype(np.float32)
            size = float(np.linalg.norm(vector)) if np.isfinite(vector).all() else 0.0
            if size > 1e-6:
                usable[memory.record.id] = vector / np.float32(size)
        if not usable:
            return {}
        try:
            usable = dict(zip(usable, await self.embedder.adopt(np.stack(list(usable.values()))), strict=True))
        except (ModelUnavailable, ModelAnswerInvalid):
            return {}
        if options.vectors == "auto":
            texts = {memory.record.id: memory.record.text for memory in memories}
            probes = list(usable)[:: max(len(usable) // _PROBES, 1)][:_PROBES]
            try:
                own = await self.embedder.embed([texts[name] for name in probes])
            except (ModelUnavailable, ModelAnswerInvalid):
                return {}
            if any(float(np.dot(usable[name], vector)) < _SAME_MODEL for name, vector in zip(probes, own, strict=True)):
                return {}
        return usable

    async def _move_session(self, scope: Scope, item: OldItem, before: MovedRecord | None, report: Report, options: MoveOptions) -> int:
        """Migrate a session. Return the version of the copy on this server, or 0 if none was written. Raises UnmovableRecord."""
        counts = report.counts[OldKind.SESSION.value]
        old = session_of(item.document or b"")
        stored = await self.memories.get(scope, [record.id for record in old.body.memories])
        ids = {record.id for record in stored if record is not None}
        ids |= {record.id for record in old.body.memories if self.preview.knows(scope, record.id)}
        change = self._session_write(old, item, ids, before, options)
        version = 0
        try:
            if options.dry_run:
                state = await self.sessions.get(scope, old.ref, 1)
                known_here = "absent" if state is None else str(state.version)
                if change.if_match != known_here or old.ref in self.preview.sessions:
                    raise VersionMismatch("it is here", current=state.version if state is not None else 0)
                await self.preview.permit(scope, old.ref, change)
                self.preview.sessions[old.ref] = {message_identity(new.message) for new in change.messages}
            else:
                version = (await self.sessions.write(scope, old.ref, change)).version
        except IdTaken as error:
            raise UnmovableRecord(f"{error.data['field']} belongs to another owner here") from error
        except VersionMismatch:
            here = await self.sessions.get(scope, old.ref)
            identities = self.preview.sessions.get(old.ref)
            if identities is None and here is not None:
                identities = {message_identity(entry.message) for entry in here.messages}
            if identities is None:
                counts.deleted_here += 1
            elif {message_identity(new.message) for new in change.messages} <= identities:
                counts.there += 1
            else:
                counts.other += 1
                reason = "it has changed on both servers since it was migrated" if before else "it already exists here with other messages"
                _note_remark(report.skipped, OldKind.SESSION, item.name, f"{reason}; the session here was not changed")
            return before.version if before else 0
        counts.written += 1
        _note_changes(report, OldKind.SESSION, item.name, old.notes)
        return version

    def _session_write(
        self, old: OldSession, item: OldItem, present_ids: set[str], before: MovedRecord | None, options: MoveOptions
    ) -> SessionWrite:
        settings, body = self.settings, old.body
        longterm = settings.longterm
        promotes = options.extract and longterm.enabled and (longterm.promote_messages or self.extracts)
        own = enumerate(body.memories if longterm.enabled else ())
        waiting = [position for position, record in own if record.persisted_at is None and record.id not in present_ids]
        # If the last PUT had no `ttl_seconds`, it removed any expiry.
        left = None if body.ttl_seconds is None else item.seconds_left
        debounce = longterm.extraction_debounce_seconds
        return SessionWrite(
            mode="put",
            messages=[
                # Messages that the archived server promoted or extracted are not processed again.
                NewMessage(
                    message,
                    self.counter.count_chat(message),
                    promotes and message.discrete_memory_extracted == "f" and message.persisted_at is None,
                )
                for message in body.messages
            ],
            context=body.context,
            context_tokens=self.counter.count(body.context) if body.context else 0,
            data=body.data,
            memories=body.memories,
            waiting=waiting,
            strategy=body.long_term_memory_strategy,
            ttl_seconds=body.ttl_seconds,
            client_tokens=body.tokens,
            created_at=body.created_at,
            last_accessed=body.last_accessed,
            default_window=settings.models.default_context_window,
            extract_after_ms=int(debounce * 1000) if self.extracts and promotes else -1,
            extract_within_ms=int(debounce * 10_000),
            if_match="absent" if before is None else str(before.version),
            moved=MovedSession(body.created_at, body.updated_at, left),
        )

    async def _move_summaries(self, scope: Scope, kind: OldKind, item: OldItem, report: Report, options: MoveOptions) -> int:
        notes: list[str] = []
        values = view_of(item.document or b"") if kind is OldKind.VIEW else partition_of(item.document or b"", notes)
        if not self.summaries:
            raise UnmovableRecord("this server does not support summary views")
        counts = report.counts[kind.value]
        for summaries in self.summaries:
            bring_in = summaries.bring_in_view if kind is OldKind.VIEW else summaries.bring_in_partition
            try:
                added = await bring_in(scope, values, dry_run=options.dry_run)
            except ValueError as error:
                raise UnmovableRecord(first_problem(error) if isinstance(error, ValidationError) else str(error)) from error
            if added is None:
                raise UnmovableRecord("its view no longer exists")
            counts.written += added
            counts.there += not added
        _note_changes(report, kind, item.name, notes)
        return 0


def _skip(report: Report, kind: OldKind, name: str, reason: str) -> None:
    report.counts[kind.value].skipped += 1
    _note_remark(report.skipped, kind, name, reason)


def _note_changes(report: Report, kind: OldKind, name: str, notes: Sequence[str]) -> None:
    if notes:
        report.counts[kind.value].changed += 1
        _note_remark(report.changed, kind, name, "; ".join(dict.fromkeys(notes))[:500])


def _note_remark(remarks: list[MigrationRemark], kind: OldKind, name: str, reason: str) -> None:
    """Add a remark, unless the list is full. The counts have no such limit."""
    if len(remarks) < _LISTED:
        remarks.append(MigrationRemark(kind=kind.value, id=name[:512], reason=reason))
