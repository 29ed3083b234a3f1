"""Import another system's data, sorted by owner and time."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from types import TracebackType
from typing import Any, cast

from agent_memory.features.transfer.import_report import problem_lines, summary_lines
from agent_memory.features.transfer.sources.lines import Placement, block_line, conversation_lines, fact_line
from agent_memory.features.transfer.sources.model import Conversation, Fact, Item, LeftOut, Source, Unusable
from agent_memory.features.transfer.sources.order import SOURCES, MoveIn
from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.listing import counted
from agent_memory_client.models import ImportReport

_EXAMPLES = 3


@dataclass(slots=True)
class LeftOuts:
    """Counts and examples of records that were not imported, by reason."""

    counts: Counter[str] = field(default_factory=Counter[str])
    examples: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, name: str, reason: str) -> None:
        reason = " ".join(reason.split())[:200]
        self.counts[reason] += 1
        if len(self.examples[reason]) < _EXAMPLES:
            self.examples[reason].append(name[:100])

    def lines(self) -> list[str]:
        return [f"left out: {count} × {reason} ({', '.join(self.examples[reason])})" for reason, count in self.counts.most_common()]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of an import. `lines` and `problems` contain human-readable text."""

    data: dict[str, Any]
    lines: list[str]
    problems: list[str]


Owner = tuple[str | None, str | None]
"""A user, or an agent without a user."""


class Moving:
    """An import's lines, stored and sorted on disk to support large files.

    Use this as a context manager: call `read`, and then iterate over `lines(owner)`.
    """

    def __init__(self, order: MoveIn) -> None:
        self.order = order
        self.left_out = LeftOuts()
        self.counts: Counter[str] = Counter()
        self._module = _module(order.source)
        self._disk = sqlite3.connect("")  # A temporary file, which SQLite deletes.

    def __enter__(self) -> Moving:
        self._disk.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA temp_store=FILE;"
            "CREATE TABLE lines (user TEXT, agent TEXT, at REAL, number INTEGER, name TEXT, line BLOB);"
            "CREATE TABLE names (name TEXT PRIMARY KEY) WITHOUT ROWID;"
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._disk.close()

    def read(self) -> Iterator[int]:
        """Read all files, and yield the running total after each record. Raises StartupError."""
        number = 0
        for path in self.order.files:
            try:
                default = datetime.fromtimestamp(path.stat().st_mtime, UTC)
                for item in self._module.read(path, self.order.mapping):
                    number += 1
                    self._keep(item, number, default)
                    yield number
            except Unusable as error:
                raise StartupError(f"{path}: {error}") from error
            except OSError as error:
                raise StartupError(f"cannot read {path}: {error.strerror}") from error
        self._disk.execute("CREATE INDEX sorted ON lines (user, agent, at, number)")

    def _keep(self, item: Item, number: int, default: datetime) -> None:
        if isinstance(item, LeftOut):
            self.left_out.add(item.name, item.reason)
            return
        name = item.id if isinstance(item, Fact | Conversation) else item.label
        user_id = self.order.user_id or item.user_id
        agent_id = None if user_id is not None else item.agent_id
        if user_id is None and agent_id is None:
            self.left_out.add(name, "it names no user: pass --user")
            return
        keeps = self._module.KEEPS_IDS and user_id == item.user_id
        place = Placement(self.order.source, user_id, agent_id, self.order.namespace, keeps, self.order.extracts)
        try:
            for line in self._lines(item, place, default):
                if isinstance(line, tuple):
                    self.left_out.add(*line)
                else:
                    self._write(line, (user_id, agent_id), number)
        except Unusable as error:
            self.left_out.add(name, str(error))
        except (ValueError, OverflowError, RecursionError):
            self.left_out.add(name, "cannot be stored")

    def _lines(self, item: Item, place: Placement, default: datetime) -> Iterator[dict[str, Any] | tuple[str, str]]:
        if isinstance(item, Conversation):
            return conversation_lines(item, place, default)
        return iter([fact_line(item, place, default) if isinstance(item, Fact) else block_line(cast("Any", item), place, default)])

    def _write(self, line: dict[str, Any], owner: Owner, number: int) -> None:
        name = str(line.get("session_id") or line["id"])
        unique = f"{line['kind']} {owner} {name}"
        if self._disk.execute("INSERT OR IGNORE INTO names VALUES (?)", (unique,)).rowcount == 0:
            self.left_out.add(name, "it is in the files twice")
            return
        now: Mapping[str, Any] = line.get("now", {}).get("record") or line
        # A session follows all memories made from its messages.
        dated = now.get("updated_at" if line["kind"] == "session" else "created_at")
        at = datetime.fromisoformat(dated).timestamp() if dated else 0.0
        raw = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        self._disk.execute("INSERT INTO lines VALUES (?, ?, ?, ?, ?, ?)", (*owner, at, number, name, raw))
        self.counts[line["kind"]] += 1

    @property
    def owners(self) -> list[Owner]:
        return self._disk.execute("SELECT DISTINCT user, agent FROM lines ORDER BY user, agent").fetchall()

    @property
    def size(self) -> int:
        """The size of all lines in bytes, excluding headers."""
        return self._disk.execute("SELECT COALESCE(SUM(LENGTH(line)), 0) FROM lines").fetchone()[0]

    def lines(self, owner: Owner) -> Iterator[bytes]:
        """Yield an owner's header and lines, oldest first. Memories come before their sessions."""
        place = Placement(self.order.source, *owner, self.order.namespace)
        select = "SELECT line FROM lines WHERE user IS ? AND agent IS ? ORDER BY at, number, rowid"
        yield json.dumps(place.header).encode()
        for (line,) in self._disk.execute(select, owner):
            yield line

    def result(self, report: ImportReport, *, dry_run: bool) -> Result:
        """Summarize what an import did or, in a dry run, would do."""
        name = self.order.name
        left_out = {reason: {"count": count, "examples": self.left_out.examples[reason]} for reason, count in self.left_out.counts.items()}
        data = {"name": name, "dry_run": dry_run, "owners": len(self.owners), "read": dict(self.counts), "left_out": left_out}
        lines = [f"read: {counted(self.counts)}, of {counted({'owner': len(self.owners)})}"]
        if dry_run:
            lines.append("This was a dry run: nothing was written.")
        else:
            data |= report.model_dump(mode="json", exclude={"complete"})
            lines += [*summary_lines(report), f"undo: agent-memory import --undo {name} (with the same --url and --api-key)"]
        return Result(data, lines, [*self.left_out.lines(), *problem_lines(report, numbered=False)])


def _module(source: str) -> Source:
    if source not in SOURCES:
        raise StartupError(f"--from {source} is unknown: use {', '.join(SOURCES)}")
    return cast("Source", import_module(f"agent_memory.features.transfer.sources.{source.replace('-', '_')}"))
