"""`agent-memory eval`: measures recall on a file of conversations, against a running server or one that it starts for this."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from ulid import ULID

from agent_memory.cli.target import say_server
from agent_memory.core.errors import StartupError
from agent_memory.evaluation import report as reports
from agent_memory.evaluation.datasets import Conversation, load
from agent_memory.evaluation.floors import floors_of, judge_floors
from agent_memory.evaluation.plot import svg
from agent_memory.evaluation.runner import Entrance, Mode, Options, run
from agent_memory.llm.tokens import TokenCounter

_LISTENS = "agent-memory listens on "
_END_SECONDS = 30.0


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


def evaluate(options: EvaluationOptions) -> int:
    """Runs and prints; returns the exit code: 0, or 1 when questions failed or a figure is below its floor. Raises StartupError for
    anything that prevents a run."""
    floors = floors_of(options.floors)
    conversations = load(options.file)[: options.conversations]
    if not any(conversation.questions for conversation in conversations):
        raise StartupError(f"{options.file} has no question whose evidence is known")
    for target in (options.json, options.plot):
        if target is not None and not target.absolute().parent.is_dir():
            raise StartupError(f"{target} cannot be written: there is no directory {target.parent}")
    results = asyncio.run(_measure(options, conversations))
    whole = reports.file_of(results)
    if options.json is not None:
        _write(options.json, json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
    if options.plot is not None:
        _write(options.plot, svg(f"Recall, {options.file.name}, unit {options.unit}", _series(results, options.unit)))
    if options.format == "json":
        print(json.dumps(whole, ensure_ascii=False))
    else:
        for report in results:
            reports.show(report, options.unit, _stdout())
    judgements = [(report, judgement) for report in results for judgement in judge_floors(report, options.unit, floors)]
    for report, judgement in judgements:
        print(f"{report['options']['entrance']}: {judgement}", file=sys.stderr if options.format == "json" else sys.stdout)
    low = sum(not judgement.holds for _, judgement in judgements)
    if judgements:
        verdict = f"{low} of {len(judgements)} figures are below their floors" if low else f"all {len(judgements)} floors are kept"
        print(verdict, file=sys.stderr if options.format == "json" else sys.stdout)
    return 1 if low or any(report["errors"] for report in results) else 0


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


def _series(results: list[reports.Report], unit: reports.Unit) -> dict[str, dict[str, float]]:
    several = len(results) > 1
    return {
        (f"{report['options']['entrance']}: " if several else "") + name: group
        for report in results
        for name, group in report[unit].items()
    }


async def _measure(options: EvaluationOptions, conversations: list[Conversation]) -> list[reports.Report]:
    """One report for each way in."""
    counter = await TokenCounter.open()
    entrances: list[Entrance] = ["memories", "sessions"] if options.entrance == "both" else [options.entrance]
    results: list[reports.Report] = []
    for entrance in entrances:
        with _server(options.url) as url, _bars() as bars:
            name = f"{options.run}-{entrance}" if options.run else f"eval-{str(ULID()).lower()}"
            run_options = Options(url, name, entrance, options.mode, options.limit, options.prompt, options.max_tokens)
            results.append(
                reports.report_of(await run(run_options, conversations, counter, _ProgressBars(bars, entrance)), options.file.name)
            )
    return results


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


# --------------------------------------------------------------------------------------------------------------------- server


@contextmanager
def _server(url: str | None) -> Generator[str, None, None]:
    """The URL of the server: the one that is given, or of a new one in a process of its own, with an empty Redis of its own.

    It has the settings of the environment, but for those that say where data lies.
    """
    if url is not None:
        say_server(url)
        yield url
        return
    with tempfile.TemporaryDirectory(prefix="agent-memory-eval-") as folder, (Path(folder) / "log").open("w+", encoding="utf-8") as log:
        command = [
            sys.executable,
            "-m",
            "agent_memory.cli.app",
            "serve",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--data-dir",
            f"{folder}/data",
        ]
        elsewhere = {"REDIS_URL", "EMBEDDED_REDIS_PORT", "KEY_PREFIX"}
        environment = {name: value for name, value in os.environ.items() if name.upper() not in elsewhere}
        # Started where no .env lies, and not told of a Ctrl-C by the terminal: we stop it when we end.
        process = subprocess.Popen(
            command, env=_with_our_path(environment), cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
        try:
            own = _announced_url(process)
            say_server(own)
            yield own
        except StartupError as error:
            if process.poll() is not None:  # then this is why it does not answer
                raise StartupError(f"the server for the evaluation ended: {_last_words(log.name)}") from error
            raise
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _with_our_path(environment: dict[str, str]) -> dict[str, str]:
    """The environment in which another directory's Python finds the same packages, also where they are found by relative paths."""
    return {**environment, "PYTHONPATH": os.pathsep.join(str(Path(entry or ".").absolute()) for entry in sys.path)}


def _announced_url(process: subprocess.Popen[str]) -> str:
    """The URL that a server says it listens on. Raises StartupError when it ends instead."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(_LISTENS):
            return line.removeprefix(_LISTENS).split()[0]
    process.wait()
    raise StartupError("it said no URL")


def _last_words(log: str) -> str:
    """The last line of a log."""
    lines = Path(log).read_text(encoding="utf-8").strip().splitlines()
    return lines[-1].removeprefix("agent-memory: ") if lines else "it said nothing"
