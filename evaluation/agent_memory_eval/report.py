"""What a run found, as a JSON object and as tables; and two such objects side by side."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from rich.console import Console
from rich.table import Table

from agent_memory.core.errors import StartupError
from agent_memory_eval.datasets import ADVERSARIAL
from agent_memory_eval.metrics import NAMES, Scores, mean, measure, percentile
from agent_memory_eval.runner import PROMPT_TOKENS, Answer, EvaluationRun

Unit = Literal["turn", "session"]
Report = dict[str, Any]
FORMAT = "agent-memory-eval/1"
OVERALL = "all"
ANSWERABLE = f"without {ADVERSARIAL}"
COLUMNS = ("R@5", "R@10", "R@50", "any@10", "all@10", "nDCG@10", "MRR")


def report_of(run: EvaluationRun, file: str) -> Report:
    """All figures, and the ranking of every question (its first ten turns)."""
    options = run.options
    prompts = [answer for answer in run.answers if answer.prompt_tokens is not None]
    return {
        "file": file,
        "server": {"url": options.url, "models": run.models},
        "options": {"entrance": options.entrance, "mode": options.mode, "limit": options.limit, "max_tokens": options.max_tokens},
        "ingest": {"turns": run.turns, "seconds": round(run.ingest_seconds, 2)} if options.ingest else None,
        "turn": groups(run.answers, "turn"),
        "session": groups(run.answers, "session"),
        "search_ms": _times([answer.search_ms for answer in run.answers]),
        "prompt": _prompt(prompts, options.max_tokens or PROMPT_TOKENS) if prompts else None,
        "errors": run.errors,
        "questions": [
            {
                "conversation": answer.conversation,
                "question": answer.question.text,
                "category": answer.question.category,
                "evidence": sorted(answer.question.turns),
                "ranked": answer.ranked[:10],
                "R@10": round(measure(answer.ranked, answer.question.turns)["R@10"], 4) if answer.question.turns else None,
                "in_prompt": answer.in_prompt,
                "ms": round(answer.search_ms, 2),
            }
            for answer in run.answers
        ],
    }


def by_group(answers: Sequence[Answer]) -> dict[str, list[Answer]]:
    """The answers of each category, of all, and of all but the adversarial ones where there are such."""
    by_name: dict[str, list[Answer]] = {OVERALL: list(answers)}
    categories = list(dict.fromkeys(answer.question.category for answer in answers))
    if ADVERSARIAL in categories:
        by_name[ANSWERABLE] = [answer for answer in answers if answer.question.category != ADVERSARIAL]
    return by_name | {name: [answer for answer in answers if answer.question.category == name] for name in categories}


def groups(answers: Sequence[Answer], unit: Unit) -> dict[str, dict[str, float]]:
    """For each group the number of questions `n` whose evidence is known at this unit, and the means of their figures."""
    figures: dict[str, dict[str, float]] = {}
    for name, members in by_group(answers).items():
        rows: list[Scores] = [
            measure(*(answer.ranked, answer.question.turns) if unit == "turn" else (answer.sessions, answer.question.sessions))
            for answer in members
            if (answer.question.turns if unit == "turn" else answer.question.sessions)
        ]
        figures[name] = {"n": len(rows)} | {figure: round(value, 4) for figure, value in mean(rows).items()}
    return figures


def _times(values: Sequence[float]) -> dict[str, float | None]:
    parts = {"p50": percentile(values, 0.50), "p95": percentile(values, 0.95), "max": max(values, default=None)}
    return {name: None if value is None else round(value, 2) for name, value in parts.items()}


def _prompt(answers: Sequence[Answer], within: int) -> Report:
    tokens = [float(answer.prompt_tokens or 0) for answer in answers]
    judged = by_group([answer for answer in answers if answer.question.turns])
    return {
        "within_tokens": within,
        "evidence": {
            name: {"n": len(members), "share": round(sum(bool(a.in_prompt) for a in members) / len(members), 4)}
            for name, members in judged.items()
            if members
        },
        "tokens": {**_times(tokens), "mean": round(sum(tokens) / len(tokens), 1)},
        "ms": _times([answer.prompt_ms or 0.0 for answer in answers]),
    }


def file_of(reports: Sequence[Report]) -> Report:
    """What is written to a file for one or more runs."""
    return {"format": FORMAT, "runs": list(reports)}


def read(path: Path) -> list[Report]:
    """The reports in a file. Raises StartupError when it is not one of ours."""
    try:
        value: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StartupError(f"{path} cannot be read: {error}") from error
    if not isinstance(value, dict) or cast("Report", value).get("format") != FORMAT:
        raise StartupError(f"{path} is not a report of `agent-memory-eval`")
    return cast("Report", value)["runs"]


def show(report: Report, unit: Unit, console: Console) -> None:
    """The tables of one report."""
    options = report["options"]
    title = f"{report['file']}: {options['entrance']} in, {options['mode']} search, unit {unit}"
    table = Table("questions", "n", *COLUMNS, title=title, title_justify="left")
    _rows(table, report[unit], lambda group, figure: f"{100 * group[figure]:.1f}" if figure in group else "-")
    console.print(table)
    lines: list[str] = []
    if report["ingest"]:
        turns, seconds = report["ingest"]["turns"], report["ingest"]["seconds"]
        lines.append(f"stored and indexed {turns} turns in {seconds:.1f} s ({turns / max(seconds, 1e-9):.0f}/s)")
    lines.append(f"search: {_shown_times(report['search_ms'])}")
    if report["prompt"]:
        prompt = report["prompt"]
        shares = ", ".join(f"{name} {100 * group['share']:.1f} %" for name, group in prompt["evidence"].items())
        lines.append(
            f"memory prompt: {_shown_times(prompt['ms'])}; tokens p50 {prompt['tokens']['p50']:.0f}, p95 {prompt['tokens']['p95']:.0f}"
        )
        lines.append(f"evidence in its first {prompt['within_tokens']} tokens: {shares}")
    lines += [f"{len(report['errors'])} questions failed, the first: {report['errors'][0]}"] if report["errors"] else []
    console.print("\n".join(lines), highlight=False, markup=False)


def _shown_times(times: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name} {value:.1f} ms" for name, value in times.items() if value is not None) or "nothing asked"


def compare(before: Report, after: Report) -> Report:
    """How the second report differs from the first, per unit, group and figure, and which questions they rank differently.

    `better` and `worse` count the questions with more or less of their evidence in the first ten.
    """
    changes: Report = {"before": _name(before), "after": _name(after)}
    for unit in ("turn", "session"):
        changes[unit] = {
            name: {"n": group["n"]} | {figure: round(group[figure] - before[unit][name][figure], 4) for figure in NAMES if figure in group}
            for name, group in after[unit].items()
            if name in before[unit] and before[unit][name]["n"] and group["n"]
        }
    old = {(row["conversation"], row["question"]): row for row in before["questions"]}
    pairs = [(old[key], row) for row in after["questions"] if (key := (row["conversation"], row["question"])) in old]
    judged = [(was, now) for was, now in pairs if was["R@10"] is not None and now["R@10"] is not None]
    changes["questions"] = len(judged)
    changes["better"] = [now["question"] for was, now in judged if now["R@10"] > was["R@10"]]
    changes["worse"] = [now["question"] for was, now in judged if now["R@10"] < was["R@10"]]
    changes["search_ms"] = {"before": before["search_ms"], "after": after["search_ms"]}
    return changes


def _name(report: Report) -> str:
    return f"{report['options']['entrance']}, {report['options']['mode']}"


def show_comparison(changes: Report, unit: Unit, console: Console) -> None:
    """The table of a comparison: differences in points."""
    title = f"({changes['after']}) minus ({changes['before']}), in points, unit {unit}"
    table = Table("questions", "n", *COLUMNS, title=title, title_justify="left")
    _rows(table, changes[unit], lambda group, figure: f"{100 * group[figure]:+.1f}" if figure in group else "-")
    console.print(table)
    better, worse = len(changes["better"]), len(changes["worse"])
    console.print(f"of {changes['questions']} questions in both, {better} find more of their evidence in the first ten, {worse} less")
    console.print(f"search before: {_shown_times(changes['search_ms']['before'])}; after: {_shown_times(changes['search_ms']['after'])}")


def _rows(table: Table, rows: Mapping[str, Mapping[str, float]], shown: Callable[[Mapping[str, float], str], str]) -> None:
    for name, group in rows.items():
        style = "bold" if name in (OVERALL, ANSWERABLE) else None
        table.add_row(name, str(group["n"]), *(shown(group, figure) for figure in COLUMNS), style=style)
