"""Import the lines of an export. Importing them again changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from io import BytesIO
from itertools import islice
from typing import Any

from agent_memory.features.access.limits import MemoryLimit
from agent_memory.features.memories.commit import ChangeOrigin, MemoryCommits, Update
from agent_memory.features.memories.quarantine.service import screen_caller_record, screen_record
from agent_memory.features.memories.service import message_memory_id
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.write_decisions import add_details, tells_the_same
from agent_memory.features.sessions.codec import message_identity
from agent_memory.features.sessions.session_write import IMPORT_FIELD, MovedSession, NewMessage, SessionWrite
from agent_memory.features.sessions.store import SessionStore
from agent_memory.features.sessions.strategies import check_strategy
from agent_memory.features.transfer.change_export import ChangeTransfer
from agent_memory.features.transfer.import_lines import (
    EndLine,
    HeaderLine,
    ImportPlacement,
    SessionLine,
    header_of,
    parse_line,
)
from agent_memory.features.transfer.import_progress import ImportOwner, ImportProgress
from agent_memory.features.transfer.memory_export import MemoryExport, MemoryExportReader
from agent_memory.features.transfer.restore import Restorer
from agent_memory.foundation.api.principals import list_place_of, permit_agent, whole_agent, writing
from agent_memory.foundation.core.errors import (
    AgentMemoryError,
    BadInput,
    ErasureUnderWay,
    Forbidden,
    RedisUnavailable,
    TooMany,
    VersionMismatch,
)
from agent_memory.foundation.core.feature import AgentExporter, Exporter, SessionPart
from agent_memory.foundation.core.input.validation import validated
from agent_memory.foundation.core.permissions import access_denied, denied_field, within
from agent_memory.foundation.core.scope import Scope, SessionRef, Work, carrying_out
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.storage.erasures import ErasureGuard
from agent_memory.foundation.storage.keyed_ids import KeyedIds
from agent_memory.foundation.storage.keyspace import tag
from agent_memory.foundation.text.normalization import is_turn
from agent_memory.foundation.text.redaction import redact
from agent_memory_client.models import ImportProblem, ImportReport, MemoryRecord

MAX_LINES = 10_000
_LISTED = 1000
_BATCH = 50
_REASONS = {
    "other": "this id already exists here with different content, which was not changed",
    "slot": "another fact with its slot is current here and was not changed",
    "both": "it has changed both here and there since it was imported; the session here was not changed",
}


@dataclass(slots=True)
class _Run:
    scope: Scope
    placing: ImportPlacement
    source: str
    owner: ImportOwner
    skips_arrived: bool
    """True for another system's data. Lines that arrived earlier are skipped."""
    report: ImportReport = field(default_factory=ImportReport)
    batch: list[tuple[int, MemoryExport]] = field(default_factory=list[tuple[int, MemoryExport]])
    marks: dict[int, str] = field(default_factory=dict[int, str])
    arrived: list[str] = field(default_factory=list[str])

    @property
    def whole(self) -> bool:
        """True if the lines contain an entire store and keep their owners."""
        return self.owner == ImportOwner(None, None, None)

    def count_not_restored(self, kind: str, count: int) -> None:
        if count:
            self.report.not_restored[kind] = self.report.not_restored.get(kind, 0) + count


@dataclass(frozen=True, slots=True)
class ImportService:
    settings: Settings
    limit: MemoryLimit
    restorer: Restorer
    decisions: MemoryCommits
    memories: MemoryStore
    reader: MemoryExportReader
    changes: ChangeTransfer
    sessions: SessionStore
    others: Sequence[Exporter]
    parts: Sequence[SessionPart]
    counter: TokenCounter
    ids: KeyedIds
    erasures: ErasureGuard
    progress: ImportProgress
    extracts: bool

    async def run(
        self,
        scope: Scope,
        namespace: str | None,
        user_id: str | None,
        lines: bytes,
        first_line: int = 1,
        source: str = "import",
        agent_id: str | None = None,
    ) -> ImportReport:
        """Import export lines, starting with the header. Invalid lines are listed in the report.

        All data is assigned to `user_id` and, if given, `namespace`. If `agent_id` is given, the
        agents' data is assigned to that agent, and the users do not change. For later parts of a
        file, `first_line` is the number of the line after the header. Raises BadInput or Forbidden.

        If `user_id` is None, the lines are another server's entire store and keep their owners.
        Memories that exist or were deleted here do not change. Sessions are replaced unless they
        have changed here.
        """
        writing(scope)
        if user_id is None and scope.limited:
            raise Forbidden("only credentials for the whole tenant may import a whole store: use them, or send user_id")
        namespace = list_place_of(scope, namespace, user_id)[0] if agent_id is None else whole_agent(scope, namespace, agent_id)
        rows = BytesIO(lines)
        head = next(rows, None)
        if head is None:
            raise BadInput("must begin with the header of an export: it has no lines", field="body")
        header = header_of(parse_line(head))
        await self.erasures.require_none(scope.tenant, namespace, user_id if agent_id is None else None, agent_id)
        now = await self.reader.now()
        with carrying_out(Work(since=now // 1000)):
            placing = self._placing(scope, header, namespace, user_id, agent_id, now, source)
            run = _Run(scope, placing, source, ImportOwner(namespace, user_id or None, agent_id), header.moved)
            await self.progress.begin(scope, source, run.owner)
            return await self._lines(run, rows, first_line)

    async def _lines(self, run: _Run, rows: Iterable[bytes], first_line: int) -> ImportReport:
        first = max(first_line, 2)
        if run.skips_arrived:
            rows = await self._skip_arrived(run, rows, first)
        for number, raw in enumerate(rows, start=first):
            if number - first >= MAX_LINES:
                raise BadInput(f"must have at most {MAX_LINES} lines: send several requests, each with the header", field="body")
            if raw.strip():
                await self._line(run, number, raw)
        await self._memories(run)
        if run.arrived:
            await self.progress.note(run.scope, run.source, run.owner, run.arrived)
        return run.report

    async def _skip_arrived(self, run: _Run, rows: Iterable[bytes], first: int) -> list[bytes]:
        """Blank out rows that were already imported, and count them as present."""
        lines = list(islice(rows, MAX_LINES + 1))
        run.marks = {number: self.progress.mark_of(run.owner, raw) for number, raw in enumerate(lines, start=first)}
        arrived = await self.progress.arrived(run.scope, run.source, run.owner, list(run.marks.values()))
        arrived_lines: list[Mapping[str, Any]] = []
        for number, mark in run.marks.items():
            if mark in arrived:
                arrived_lines.append(line := parse_line(lines[number - first]))
                # Do not note the line again: the import may be undone in the meantime.
                kind = str(line.get("kind"))
                run.report.present[kind] = run.report.present.get(kind, 0) + 1
                lines[number - first] = b""
        if run.whole:
            await self._count_deleted(run, arrived_lines)
        return lines

    async def _count_deleted(self, run: _Run, lines: Sequence[Mapping[str, Any]]) -> None:
        """Count memories and sessions from an earlier import that no longer exist here."""
        names = [line["id"] for line in lines if line.get("kind") == "memory"]
        run.count_not_restored("memory", (await self.memories.get(run.scope, names)).count(None))
        for line in lines:
            if line.get("kind") == "session":
                ref = SessionRef(line["session_id"], line.get("namespace"), line.get("user_id"))
                run.count_not_restored("session", int(await self.sessions.get(run.scope, ref, 1) is None))

    def _placing(
        self, scope: Scope, header: HeaderLine, namespace: str | None, user_id: str | None, agent_id: str | None, now: int, source: str
    ) -> ImportPlacement:
        clean = redact if self.settings.longterm.redact_secrets and user_id is not None else str

        def screen(record: MemoryRecord) -> MemoryRecord:
            # Administrators may import memories that were approved. Quarantined memories stay quarantined.
            judged = screen_record(self.settings, record) if scope.may_administer else screen_caller_record(self.settings, record)
            screened = judged if record.quarantine is None else record
            return screened.model_copy(update={"written_by": _writer(scope, record.written_by)})

        return ImportPlacement(header, user_id or "", namespace, now, self.restorer.vector, clean, screen, self.ids, source, agent_id)

    async def _line(self, run: _Run, number: int, raw: bytes) -> None:
        line: Mapping[str, Any] = {}
        try:
            line = parse_line(raw)
            kind = line.get("kind")
            if kind == "memory":
                await self._memory(run, number, run.placing.memory(line))
                return
            await self._memories(run)  # Write the batch first, because the following lines may name its memories.
            match kind:
                case "change" if run.placing.agent_id is None:
                    state = await self.changes.restore(run.scope, run.placing.user_id, run.placing.change(line))
                case "session" | "waiting":
                    state = await self._session(run, validated(SessionLine, line))
                case str() if (exporter := self._exporter(run, kind)) is not None:
                    state = await exporter.restore_line(run.scope, run.placing, line)
                case "end":
                    run.report.complete = validated(EndLine, line).lines == number - 1
                    return
                case "header":
                    return
                case _:
                    raise BadInput("is of a kind that this server does not support", field="kind")
            self._done(run, number, str(kind), state, line.get("id") or line.get("session_id"))
        except (RedisUnavailable, TooMany, ErasureUnderWay):
            raise  # The line is valid: the caller can send the same lines again later.
        except AgentMemoryError as error:
            reason = f"{error.field}: {error.message}" if isinstance(error, BadInput) else error.message
            self._problem(run, number, line.get("kind"), line.get("id") or line.get("session_id"), reason)

    def _exporter(self, run: _Run, kind: str) -> Exporter | None:
        exporter = next((each for each in self.others if kind in each.kinds), None)
        return exporter if run.placing.agent_id is None or isinstance(exporter, AgentExporter) else None

    def _done(self, run: _Run, number: int, kind: str, state: str, name: object) -> None:
        if state in ("new", "same") and number in run.marks:
            run.arrived.append(run.marks[number])
        if state == "new":
            run.report.imported[kind] = run.report.imported.get(kind, 0) + 1
        elif state == "same":
            run.report.present[kind] = run.report.present.get(kind, 0) + 1
        else:
            self._problem(run, number, kind, name, _REASONS[state])

    def _problem(self, run: _Run, number: int, kind: object, name: object, reason: str) -> None:
        report = run.report
        report.problem_count += 1
        if len(report.problems) < _LISTED:
            words = [word[:200] if isinstance(word, str) else None for word in (kind, name)]
            report.problems.append(ImportProblem(line=number, kind=words[0], id=words[1], reason=reason[:500]))

    async def _memory(self, run: _Run, number: int, memory: MemoryExport) -> None:
        versions = [*memory.versions, *([memory.now] if memory.now else [])]
        if not all(within(run.scope, version.record) for version in versions):
            record = next(version.record for version in versions if not within(run.scope, version.record))
            raise access_denied("this memory", denied_field(run.scope, record))
        run.batch.append((number, memory))
        if len(run.batch) >= _BATCH:
            await self._memories(run)

    async def _memories(self, run: _Run) -> None:
        batch, run.batch = run.batch, []
        await self.limit.room_for(run.scope.tenant, len(batch))
        states = await self.restorer.restore(run.scope, [memory for _, memory in batch], source=run.source, buries=run.whole)
        for position, state in enumerate(states):
            if state.startswith("twin "):
                states[position] = await self._twin(run, batch[position][1], state.removeprefix("twin "))
        run.count_not_restored("memory", states.count("buried"))
        for (number, memory), state in zip(batch, states, strict=True):
            self._done(run, number, "memory", "same" if state == "buried" else state, memory.id)
            if state == "new" and memory.now is not None:
                run.report.vectors_reused += memory.now.vector is not None
                run.report.vectors_to_embed += memory.now.vector is None

    async def _twin(self, run: _Run, memory: MemoryExport, mid: str) -> str:
        """Merge a memory into `mid` if they say the same thing, or else store it separately."""
        scope = run.scope
        other = (await self.memories.load_by_names(scope, [mid]))[0]
        if other is not None and memory.now is not None and tells_the_same(memory.now.record, other.record):
            more = other.record if run.whole or is_turn(memory.now.record) else add_details(other.record, memory.now.record)
            if more != other.record:
                await self.decisions.commit(
                    scope, [Update(other, more)], ChangeOrigin("import", "said again in an import"), background=True
                )
            await self.restorer.fold(scope, memory, other, run.source)
            return "same"
        return (await self.restorer.restore(scope, [memory], dedupe=False, source=run.source, buries=run.whole))[0]

    async def _session(self, run: _Run, line: SessionLine) -> str:
        check_strategy(line.strategy)
        agent_id = run.placing.agent(line.agent_id)
        permit_agent(run.scope, agent_id)
        ref = SessionRef(line.session_id, run.placing.namespace(line.namespace), run.placing.user(line.user_id))
        waits = await self._waits(run, ref, line)
        created = line.created_at or datetime.now(UTC)
        updated = line.updated_at or created
        ended = line.kind == "waiting"
        memories = [run.placing.record(record) for record in line.memories]
        stored = await self.memories.get(run.scope, [record.id for record in memories]) if run.whole else []
        existing_ids = {record.id for record in stored if record is not None}
        own = enumerate(memories) if self.settings.longterm.enabled else ()
        waiting = [position for position, record in own if record.persisted_at is None and record.id not in existing_ids]
        await self.limit.room_for(run.scope.tenant, sum(waits) + len(waiting))
        debounce = self.settings.longterm.extraction_debounce_seconds
        change = SessionWrite(
            mode="put",
            messages=[
                NewMessage(message, self.counter.count_chat(message), is_waiting, writer=_writer(run.scope, message.written_by))
                for message, is_waiting in zip((entry.message() for entry in line.messages), waits, strict=True)
            ],
            context=line.context,
            context_tokens=self.counter.count(line.context) if line.context else 0,
            data=line.data,
            memories=memories,
            waiting=waiting,
            strategy=line.strategy,
            agent_id=agent_id,
            # Store an ended session for only a second, because its waiting work outlives it.
            ttl_seconds=1 if ended else line.ttl_seconds,
            client_tokens=line.tokens,
            created_at=created,
            last_accessed=line.last_accessed,
            window=line.window,
            default_window=self.settings.models.default_context_window,
            extract_after_ms=int(debounce * 1000) if self.extracts and any(waits) else -1,
            extract_within_ms=int(debounce * 10_000),
            if_match="absent",
            moved=MovedSession(
                created, updated, 1 if ended else line.seconds_left, self._fields(run, line) | {IMPORT_FIELD: tag(run.source)}
            ),
        )
        state = "new"
        mark = self.progress.mark_of(run.owner, repr(ref).encode())
        if run.skips_arrived and await self._is_deleted(run, ref, mark):
            run.count_not_restored("session", int(run.whole))
            return "same"
        try:
            await self.sessions.write(run.scope, ref, change)
        except VersionMismatch:
            existing = await self.sessions.get(run.scope, ref)
            if existing is None or (run.placing.agent_id is not None and existing.agent_id != agent_id):
                return "other"
            stored_identities = {message_identity(stored.message) for stored in existing.messages}
            has_all = {message_identity(entry.message()) for entry in line.messages} <= stored_identities
            if existing.created_at != created and not has_all:
                return "other"
            state = "new" if await self._continue(run, ref, existing.version, change) else "same" if has_all or not run.whole else "both"
        await self._resume(run, ref, line)
        if run.skips_arrived:
            run.arrived.append(mark)
        return state

    async def _is_deleted(self, run: _Run, ref: SessionRef, mark: str) -> bool:
        """True if a session from an earlier run has expired or been deleted."""
        arrived = await self.progress.arrived(run.scope, run.source, run.owner, [mark])
        return bool(arrived) and await self.sessions.get(run.scope, ref, 1) is None

    async def _continue(self, run: _Run, ref: SessionRef, version: int, change: SessionWrite) -> bool:
        """Append new messages to an imported session, unless the session has changed here.

        If an entire store is imported, replace the session instead.
        """
        (source,) = await self.sessions.import_sources(run.scope, [ref])
        if not source or change.moved is None:
            return False
        moved = replace(change.moved, fields={IMPORT_FIELD: tag(source)})
        more = replace(change, if_match=str(version), moved=moved)
        if not run.whole:
            more = replace(more, mode="append", waiting=(), memories=())
        with suppress(VersionMismatch):  # The session is changing now, so keep its current state.
            return (await self.sessions.write(run.scope, ref, more)).added > 0 or run.whole
        return False

    async def _resume(self, run: _Run, ref: SessionRef, line: SessionLine) -> None:
        for part in self.parts:
            if (line.model_extra or {}).get(part.part) is not None:
                await part.resume_part(run.scope, ref)

    def _fields(self, run: _Run, line: SessionLine) -> dict[str, str]:
        extra_fields, fields = line.model_extra or {}, dict[str, str]()
        for part in self.parts:
            if extra_fields.get(part.part) is not None:
                fields |= part.restore_part(run.scope, run.placing, extra_fields[part.part], len(line.messages))
        return fields

    async def _waits(self, run: _Run, ref: SessionRef, line: SessionLine) -> list[bool]:
        """For each message, return whether background tasks must process it."""
        longterm = self.settings.longterm
        if not (longterm.enabled and (longterm.promote_messages or self.extracts)):
            return [False] * len(line.messages)
        half = [entry for entry in line.messages if entry.waits and entry.promoted]
        texts: dict[str, str] = {}
        if half and not run.placing.moved(line.namespace):
            records = await self.memories.get(run.scope, [message_memory_id(ref, entry.id) for entry in half])
            texts = {entry.id: record.text for entry, record in zip(half, records, strict=True) if record is not None}
        return [entry.waits and (not entry.promoted or texts.get(entry.id) == entry.content) for entry in line.messages]


def _writer(scope: Scope, written_by: str | None) -> str | None:
    """Return the writer of imported text. Only administrators may specify `written_by`."""
    return written_by if scope.may_administer else scope.actor or None
