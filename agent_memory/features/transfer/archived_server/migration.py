"""Import an archived server's Redis by converting it to export lines.

A migration can be interrupted and repeated. It never changes data that already exists here, and
never restores data that was deleted here. If a session changes only on the archived server, a later
run migrates it again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from agent_memory.features.transfer.archived_server.layout import OldItem, OldKind, OldStore
from agent_memory.features.transfer.archived_server.lines import Line, memory_lines, session_line, summary_line
from agent_memory.features.transfer.archived_server.records import OldMemory, UnmovableRecord, memory_of_hash, session_of
from agent_memory.features.transfer.import_report import problem_lines, summary_lines
from agent_memory.features.transfer.imports import ImportService
from agent_memory.features.transfer.sources.lines import Placement
from agent_memory.foundation.core.listing import counted
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.llm.base import Embedder
from agent_memory.foundation.storage.search.indexes import VectorSpec
from agent_memory_client._wire.transfers import add_up_reports
from agent_memory_client.models import ImportProblem, ImportReport

# Items per page. Sessions can be large, so their pages are short.
_PAGES = {OldKind.MEMORY: 200, OldKind.SESSION: 25, OldKind.VIEW: 50, OldKind.PARTITION: 50}
_MOST = 1000
"""Limit on items per page, and on changes listed in a report."""
_MOST_SHOWN = 20


class Report(ImportReport):
    """The result of a migration or dry run. `changed` lists data that was altered."""

    name: str
    dry_run: bool
    tokens: int = 0
    changed: list[ImportProblem] = Field(default_factory=list[ImportProblem])

    def lines(self) -> list[str]:
        """Return the report as lines of human-readable text."""
        lines = summary_lines(self)
        if self.dry_run:
            kinds = f"to import, unless it is here: {counted(self.imported)}"
            lines = [kinds, f"vectors: {self.vectors_reused} would be kept, {self.vectors_to_embed} would be made by a worker"]
        if self.tokens:
            lines.append(f"tokens: {self.tokens} cannot be moved, as only hashes are stored: make new ones with `agent-memory token add`")
        changes = [f"  {each.kind} {each.id!r}: {each.reason}" for each in self.changed]
        for title, remarks in (("Not imported", problem_lines(self, numbered=False)), ("Imported with changes", changes)):
            more = [f"  and {len(remarks) - _MOST_SHOWN} more: see --json"] if len(remarks) > _MOST_SHOWN + 1 else []
            lines += ["", f"{title}:", *remarks[: _MOST_SHOWN + 1], *more] if remarks else []
        undo = f"undo: agent-memory import --undo {self.name} (with --url, if a server uses the store)"
        return [*lines, "", "This was a dry run: nothing was written. Run it again with --yes to move." if self.dry_run else undo]


@dataclass(frozen=True, slots=True)
class MoveOptions:
    """Options for a migration.

    `vectors` is `auto` (check a sample of the old vectors), `reuse` (trust all old vectors) or
    `embed` (recompute all vectors). If `extract` is true, this server extracts facts from messages
    that the archived server has not processed.
    """

    dry_run: bool = True
    vectors: Literal["auto", "reuse", "embed"] = "auto"
    extract: bool = True
    page: int | None = None


OnProgress = Callable[[OldKind, int, int], None]
"""Called with the kind, the number of items read, and their approximate total."""


@dataclass(frozen=True, slots=True)
class MigrationService:
    old: OldStore
    imports: ImportService
    embedder: Embedder
    spec: VectorSpec

    async def run(self, scope: Scope, options: MoveOptions, on_progress: OnProgress | None = None) -> Report:
        """Migrate everything or, in a dry run, report what would be imported.

        If this raises RedisUnavailable, TooMany or ErasureUnderWay, run the migration again.
        """
        report = Report(name=self.old.source, dry_run=options.dry_run, tokens=await self.old.count(OldKind.TOKEN))
        header = Placement(self.old.source, "", None, None).header
        # The vectors were made by the current model, or else they are not in the lines.
        header["embedding"] = {"model": self.spec.model, "dimensions": self.spec.dimensions, "datatype": "FLOAT32"}
        for kind, size in _PAGES.items():
            total, processed = await self.old.count(kind), 0
            if on_progress:
                on_progress(kind, 0, total)
            async for items in self.old.pages(kind, min(options.page or size, _MOST)):
                lines = await self._lines(kind, items, report, options)
                if options.dry_run:
                    vectors = ["vector" in line["now"] for line in lines if kind is OldKind.MEMORY]
                    step = ImportReport(imported=Counter(line["kind"] for line in lines), vectors_reused=sum(vectors))
                    step.vectors_to_embed = len(vectors) - step.vectors_reused
                else:
                    step = await self.imports.run(scope, None, None, b"\n".join(map(_encoded, [header, *lines])), source=self.old.source)
                report = report.model_copy(update=dict(add_up_reports([report, step])))
                processed += len(items)
                if on_progress:
                    on_progress(kind, processed, max(total, processed))
        return report

    async def _lines(self, kind: OldKind, items: Sequence[OldItem], report: Report, options: MoveOptions) -> list[Line]:
        lines: list[Line] = []
        memories: list[OldMemory] = []
        for item in items:
            notes: list[str] = []
            try:
                if item.problem is not None:
                    raise UnmovableRecord(item.problem)
                if kind is OldKind.MEMORY:
                    memories.append(memory := memory_of_hash(item.name, item.fields or {}))
                    notes = memory.notes
                elif kind is OldKind.SESSION:
                    session = session_of(item.document or b"")
                    lines.append(session_line(session, item, extract=options.extract))
                    notes = session.notes
                else:
                    lines.append(summary_line(kind, item, notes))
            except UnmovableRecord as error:
                report.problem_count += 1
                report.problems.append(_remark(kind, item, str(error)))
            if notes:
                report.changed.append(_remark(kind, item, "; ".join(dict.fromkeys(notes))[:500]))
        del report.problems[_MOST:], report.changed[_MOST:]
        memories.sort(key=lambda memory: memory.record.created_at)  # The first of several equal memories is kept.
        return lines + await memory_lines(memories, self.embedder, options.vectors)


def _remark(kind: OldKind, item: OldItem, reason: str) -> ImportProblem:
    return ImportProblem(line=0, kind=kind.value, id=item.name[:512], reason=reason)


def _encoded(line: dict[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=False).encode("utf-8", "replace")
