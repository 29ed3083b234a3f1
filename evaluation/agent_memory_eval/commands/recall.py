"""`agent-memory-eval`: measures recall on a file of conversations, against a running server or one that it starts for this."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from ulid import ULID

from agent_memory.core.errors import StartupError
from agent_memory.llm.tokens import TokenCounter
from agent_memory_eval import report as reports
from agent_memory_eval.commands.server import evaluation_server
from agent_memory_eval.datasets import Conversation, load
from agent_memory_eval.floors import floors_of, judge_floors
from agent_memory_eval.plot import svg
from agent_memory_eval.runner import Entrance, Mode, Options, run


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """What the command line asked for."""

    file: Path
    url: str | None
    entrance: Literal["memories", "sessions", "both"]
    unit: reports.Unit
    mode: Mode
    limit: int
    prompt: bool
    max_tokens: int | None
    conversations: int | None
    run: str | None
    json: Path | None
    plot: Path | None
    format: Literal["table", "json"]
    floors: str | None = None


def evaluate(wanted: EvaluationOptions) -> int:
    """Runs and prints; returns the exit code: 0, or 1 when questions failed or a figure is below its floor. Raises StartupError for
    anything that prevents a run."""
    floors = floors_of(wanted.floors)
    conversations = load(wanted.file)[: wanted.conversations]
    if not any(conversation.questions for conversation in conversations):
        raise StartupError(f"{wanted.file} has no question whose evidence is known")
    for target in (wanted.json, wanted.plot):
        if target is not None and not target.absolute().parent.is_dir():
            raise StartupError(f"{target} cannot be written: there is no directory {target.parent}")
    found = asyncio.run(_measured(wanted, conversations))
    whole = reports.file_of(found)
    if wanted.json is not None:
        _write(wanted.json, json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
    if wanted.plot is not None:
        _write(wanted.plot, svg(f"Recall, {wanted.file.name}, unit {wanted.unit}", _series(found, wanted.unit)))
    if wanted.format == "json":
        print(json.dumps(whole, ensure_ascii=False))
    else:
        for report in found:
            reports.show(report, wanted.unit, _stdout())
    judgements = [(report, kept) for report in found for kept in judge_floors(report, wanted.unit, floors)]
    for report, kept in judgements:
        print(f"{report['options']['entrance']}: {kept}", file=sys.stderr if wanted.format == "json" else sys.stdout)
    low = sum(not kept.holds for _, kept in judgements)
    if judgements:
        verdict = f"{low} of {len(judgements)} figures are below their floors" if low else f"all {len(judgements)} floors are kept"
        print(verdict, file=sys.stderr if wanted.format == "json" else sys.stdout)
    return 1 if low or any(report["errors"] for report in found) else 0


def compare(before: Path, after: Path, unit: reports.Unit, form: Literal["table", "json"]) -> int:
    """Prints how the runs of the second file differ from those of the first, pair by pair. Raises StartupError."""
    changes = [reports.compare(*pair) for pair in zip(reports.read(before), reports.read(after), strict=False)]
    if form == "json":
        print(json.dumps({"comparisons": changes}, ensure_ascii=False))
    else:
        for change in changes:
            reports.show_comparison(change, unit, _stdout())
    return 0


def _stdout() -> Console:
    # In a pipe a table must not be folded at 80 columns.
    return Console() if sys.stdout.isatty() else Console(width=140)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StartupError(f"{path} cannot be written: {error.strerror}") from error


def _series(found: list[reports.Report], unit: reports.Unit) -> dict[str, dict[str, float]]:
    several = len(found) > 1
    return {
        (f"{report['options']['entrance']}: " if several else "") + name: group for report in found for name, group in report[unit].items()
    }


async def _measured(wanted: EvaluationOptions, conversations: list[Conversation]) -> list[reports.Report]:
    """One report for each way in."""
    counter = await TokenCounter.open()
    entrances: list[Entrance] = ["memories", "sessions"] if wanted.entrance == "both" else [wanted.entrance]
    found: list[reports.Report] = []
    for entrance in entrances:
        with evaluation_server(wanted.url) as url, _bars() as bars:
            name = f"{wanted.run}-{entrance}" if wanted.run else f"eval-{str(ULID()).lower()}"
            options = Options(url, name, entrance, wanted.mode, wanted.limit, wanted.prompt, wanted.max_tokens)
            found.append(reports.report_of(await run(options, conversations, counter, _ProgressBars(bars, entrance)), wanted.file.name))
    return found


# ------------------------------------------------------------------------------------------------------------------- progress


def _bars() -> Progress:
    columns = (TextColumn("{task.description:20}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True))


class _ProgressBars:
    """A bar for each stage of a run."""

    def __init__(self, bars: Progress, entrance: str) -> None:
        self._bars = bars
        self._entrance = entrance
        self._known: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage not in self._known:
            self._known[stage] = self._bars.add_task(f"{self._entrance}: {stage}")
        self._bars.update(self._known[stage], completed=done, total=total)
