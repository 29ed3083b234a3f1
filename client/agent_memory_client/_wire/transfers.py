"""Split imports into multiple requests, merge their reports, and verify exports."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from agent_memory_client.errors import MemoryProtocolError
from agent_memory_client.models import ImportReport

PART_LINES = 500
PART_BYTES = 2 * 1024 * 1024


def import_parts(lines: Iterable[bytes | str]) -> Iterator[tuple[int, bytes]]:
    """Yield `(first line number, body)` for each part of an import file.

    Each body starts with the file's header and can safely be sent again. An empty file has no
    parts.
    """
    header = b""
    part: list[bytes] = []
    size = first = number = 0
    for number, line in enumerate(lines, start=1):
        raw = (line.encode() if isinstance(line, str) else line).rstrip(b"\r\n")
        if number == 1:
            header, first = raw, 2
            continue
        if part and (len(part) >= PART_LINES or size + len(raw) > PART_BYTES):
            yield first, b"\n".join([header, *part])
            part, size, first = [], 0, number
        part.append(raw)
        size += len(raw) + 1
    if number:
        yield first, b"\n".join([header, *part])


def add_up_reports(reports: Iterable[ImportReport]) -> ImportReport:
    """Merge the reports for all parts of an import."""
    whole = ImportReport()
    for report in reports:
        for name in ("imported", "present", "not_restored"):
            counts: dict[str, int] = getattr(whole, name)
            for kind, count in getattr(report, name).items():
                counts[kind] = counts.get(kind, 0) + count
        whole.problems = [*whole.problems, *report.problems][:1000]
        whole.problem_count += report.problem_count
        whole.vectors_reused += report.vectors_reused
        whole.vectors_to_embed += report.vectors_to_embed
        whole.complete = whole.complete or report.complete
    return whole


def check_export_end(count: int, last_line: bytes) -> None:
    """Raise MemoryProtocolError unless the last line ends the export with the correct count."""
    try:
        last = json.loads(last_line) if len(last_line) < 10_000 else {}
    except ValueError:
        last = {}
    if not isinstance(last, dict) or last.get("kind") != "end" or last.get("lines") != count - 1:
        raise MemoryProtocolError(f"the export broke off after {count} lines: export again")
