"""Format an import report as human-readable text."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.listing import counted

if TYPE_CHECKING:  # So that `agent-memory --help` does not load the models.
    from agent_memory_client.models import ImportReport

_MOST_SHOWN = 20


def summary_lines(report: ImportReport) -> list[str]:
    lines = [f"imported: {counted(report.imported)}", f"already here: {counted(report.present)}"]
    if report.not_restored:
        lines.append(
            f"not restored, as it was deleted here (also by --undo) or expired: {counted(report.not_restored)}. To restore a user's data, "
            "migrate to an empty store (another KEY_PREFIX), export the user there, and import that file here"
        )
    return [*lines, f"vectors: {report.vectors_reused} kept, {report.vectors_to_embed} to be created by a worker"]


def problem_lines(report: ImportReport, *, numbered: bool = True) -> list[str]:
    """Describe the first few problems, one per line.

    If `numbered` is false, omit the line numbers.
    """
    problems = [
        f"{f'line {each.line} ' if numbered else ''}({' '.join(filter(None, (each.kind or '?', each.id)))}): {each.reason}"
        for each in report.problems
    ]
    if report.problem_count > _MOST_SHOWN:
        problems[_MOST_SHOWN:] = [f"{report.problem_count} lines were not imported: --json lists up to 1000 of them"]
    if numbered and not report.complete:
        problems.append("the file is incomplete: its last line or lines before it are missing")
    return problems


def owner_of_export(header: bytes) -> tuple[str, bool]:
    """Return the owner's id in an export's header, and whether the owner is an agent.

    Raises StartupError.
    """
    with suppress(ValueError, AttributeError):
        names = json.loads(header)
        for field in ("user_id", "agent_id"):
            if isinstance(name := names.get(field), str) and name:
                return name, field == "agent_id"
    raise StartupError("the first line does not name a user or an agent: if this is an export, pass --user-id")
