"""Format evaluation results as tables and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_memory_eval.baselines import SYSTEMS
from agent_memory_eval.metrics import RECALL, Estimate, estimate
from agent_memory_eval.runner import SERVER, Row

EVERY = "all with evidence"
NONE = "all without evidence"
GAIN = "gain"
"""R@10 minus the R@10 of the set's best baseline, question by question."""
COLUMNS = ("R@10", *SYSTEMS, GAIN, "R@50", "all@10", "MRR", "evidence", "precision", "nothing shown", "lines")
SUMMARY = ("R@10", "best baseline", GAIN, "MRR", "evidence", "precision", "lines")
FIGURES = frozenset((*RECALL, GAIN, "evidence", "precision", "nothing shown"))
"""The figures that can have a floor."""

Figures = dict[str, Estimate]
SetReport = dict[str, Figures]
"""Figures of each group of questions."""


def report_of(rows: Sequence[Row]) -> SetReport:
    """Return figures for questions with evidence, questions without evidence, and each category.

    Category `a` includes the questions in `a/b`.
    """
    groups = {EVERY: [row for row in rows if row.question.evidence], NONE: [row for row in rows if not row.question.evidence]}
    for row in rows:
        parent = row.question.category.partition("/")[0]
        for name in dict.fromkeys((parent, row.question.category)):
            groups.setdefault(name, []).append(row)
    best = _best_baseline(groups[EVERY])
    return {name: _figures(members, best) for name, members in groups.items() if members}


def _best_baseline(rows: Sequence[Row]) -> str | None:
    sums = {system: sum(row.recall[system]["R@10"] for row in rows) for system in SYSTEMS if rows and system in rows[0].recall}
    return max(sums, key=sums.__getitem__, default=None)


def _figures(rows: Sequence[Row], best: str | None) -> Figures:
    values: dict[str, list[float]] = {}
    for row in rows:
        scores = dict(row.prompt)
        for system, recall in row.recall.items():
            scores |= recall if system == SERVER else {system: recall["R@10"]}
        if best and row.recall:
            scores |= {GAIN: scores["R@10"] - scores[best], "best baseline": scores[best]}
        for name, value in scores.items():
            values.setdefault(name, []).append(value)
    return {name: estimate(samples) for name, samples in values.items()}


def set_table(name: str, report: SetReport) -> str:
    """Return a table for one set, with one row per group."""
    columns = [column for column in COLUMNS if any(column in figures for figures in report.values())]
    lines = [
        [group, str(max(figure.n for figure in figures.values())), *(cell(figures, column) for column in columns)]
        for group, figures in report.items()
        if figures
    ]
    return f"**{name}**\n\n{table(['questions', 'n', *columns], lines)}"


def summary_table(reports: Mapping[str, SetReport], failed: Mapping[str, Sequence[str]]) -> str:
    """Return a table with one row per set."""
    lines = []
    for name, report in reports.items():
        answerable, unknown = report.get(EVERY, {}), report.get(NONE, {})
        cells = [cell(answerable, column) for column in SUMMARY]
        floors = ("below: " + ", ".join(failed[name]) if failed[name] else "kept") if name in failed else "none"
        lines.append([name, *cells, cell(unknown, "nothing shown"), cell(unknown, "lines"), floors])
    return table(["set", *SUMMARY, "no evidence: nothing shown", "no evidence: lines", "floors"], lines)


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines))


def cell(figures: Figures, name: str) -> str:
    """Format a mean and its interval. All figures except `lines` are in percent."""
    if name not in figures:
        return ""
    mean, low, high = (value if name == "lines" else 100 * value for value in figures[name][:3])
    return f"{mean:.1f} [{low:.1f}, {high:.1f}]"


def values_of(report: SetReport, rows: Sequence[Row]) -> dict[str, Any]:
    """Return a set's figures and the results for each question as a JSON object."""
    questions = [
        {
            "conversation": row.conversation.id,
            "id": row.question.id,
            "category": row.question.category,
            "evidence": sorted(row.question.evidence),
            "ranked": row.ranked,
            "recall": row.recall,
            "prompt": row.prompt,
        }
        for row in rows
    ]
    groups = {group: {name: figure._asdict() for name, figure in figures.items()} for group, figures in report.items()}
    return {"groups": groups, "questions": questions}
