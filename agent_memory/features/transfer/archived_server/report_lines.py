"""Describe a migration's report for people."""

from __future__ import annotations

from agent_memory.features.transfer.archived_server.layout import OldKind
from agent_memory.features.transfer.archived_server.migration import Report

PLURALS = {OldKind.MEMORY: "memories", OldKind.SESSION: "sessions", OldKind.VIEW: "views", OldKind.PARTITION: "partitions"}
_SHOWN = 20


def report_lines(report: Report) -> list[str]:
    lines: list[str] = []
    would = "would be " if report.dry_run else ""
    for kind, plural in PLURALS.items():
        counts = report.counts[kind.value]
        parts = {
            f"{would}written": counts.written,
            f"{would}merged into equal memories": counts.merged,
            "already there": counts.there,
            "deleted here since": counts.deleted_here,
            "not changed (different content is stored here)": counts.other,
            "skipped": counts.skipped,
            "with changes": counts.changed,
        }
        always = (f"{would}written", "already there")
        counted_parts = ", ".join(f"{count} {what}" for what, count in parts.items() if count or what in always)
        lines.append(f"{plural + ':':12}{counts.read} read: {counted_parts}")
    lines.append(f"vectors:    {report.vectors_reused} {would}kept, {report.vectors_to_embed} {would}made by a worker")
    if report.tokens:
        lines.append(f"tokens:     {report.tokens} cannot be moved, as only hashes are stored: make new ones with `agent-memory token add`")
    for title, remarks in (("Skipped or not changed here", report.skipped), ("Moved with changes", report.changed)):
        if remarks:
            lines += ["", f"{title}:", *(f"  {remark.kind} {remark.id!r}: {remark.reason}" for remark in remarks[:_SHOWN])]
        if len(remarks) > _SHOWN:
            lines.append(f"  and {len(remarks) - _SHOWN} more: --json lists up to 1000")
    if report.dry_run:
        lines += ["", "This was a dry run: nothing was written. Run it again with --yes to move."]
    elif report.resumed:
        lines += ["", "An unfinished move was continued; the counts are for the whole move."]
    return lines
