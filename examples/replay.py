"""Plays the conversations of a LoCoMo file into a running memory server, turn by turn as a chat application would, and says what it kept.

    pip install ./client rich
    python examples/replay.py conversations.json --url http://127.0.0.1:8000

Every conversation is a user. Each turn is appended to a session; every few turns a memory prompt is asked for, as before a model's
answer. By default a conversation is one long session, larger than its context window, so that the server has to summarize it. At the
end, each labeled question is asked from a new session of the same user: does its prompt hold a turn that answers it?

Exit code 0: nothing failed and nothing was lost. 1: otherwise. Ids come from `--run` and the file, so a second run adds nothing twice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

try:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Table

    from agent_memory_client import MemoryAPIClient, MemoryClientConfig, MemoryClientError, MemoryMessage
except ImportError as missing:
    raise SystemExit(f"{missing.name} is missing: pip install ./client rich") from None

CATEGORIES = {4: "single-hop", 1: "multi-hop", 2: "temporal", 3: "open-domain", 5: "adversarial"}
JUDGED = (1, 2, 3, 4)
MEMORIES = 10

_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True)
class Turn:
    """One turn: the session it stands in (a number), and the message that it becomes."""

    session: int
    message: MemoryMessage


@dataclass(frozen=True)
class Question:
    """A question and the ids of the messages that answer it."""

    text: str
    category: int
    evidence: frozenset[str]


@dataclass
class Report:
    """What became of one conversation. Times in seconds, `window_used` in percent of the context window (the fullest session)."""

    user_id: str
    turns: int = 0
    sessions: int = 0
    appended: int = 0
    prompts: int = 0
    seconds: float = 0.0
    settled_seconds: float = 0.0
    left_in_session: int = 0
    summarized: int = 0
    summary_characters: int = 0
    window_used: float = 0.0
    memories: dict[str, int] = field(default_factory=dict)
    in_summary_only: int = 0
    lost: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    asked: dict[int, int] = field(default_factory=dict)
    found: dict[int, int] = field(default_factory=dict)


def main() -> int:
    """Replays the file of the command line; returns the exit code."""
    options = parser().parse_args()
    try:
        samples = json.loads(Path(options.file).read_text(encoding="utf-8"))[: options.conversations]
    except (OSError, ValueError) as error:
        raise SystemExit(f"{options.file} cannot be read: {error}") from error
    console = Console()
    try:
        reports = asyncio.run(replay(options, samples, console))
    except MemoryClientError as error:
        console.print(f"[red]{error}[/red]")
        return 1
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(report) for report in reports], indent=1) + "\n", encoding="utf-8")
    return 1 if any(report.errors or report.lost for report in reports) else 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("file", help="conversations in the format of LoCoMo")
    made.add_argument("--url", "--base-url", dest="base_url", default="http://127.0.0.1:8000")
    made.add_argument("--run", default="replay", help="prefix of all ids; another one starts afresh")
    made.add_argument("--conversations", type=int, help="only the first N conversations")
    made.add_argument("--limit", type=int, help="only the first N turns of each conversation")
    made.add_argument("--context-window", type=int, default=4000, help="tokens of the model that is played")
    made.add_argument("--prompt-every", type=int, default=5, metavar="TURNS", help="0: never")
    made.add_argument("--session-per-date", action="store_true", help="a session for each dated one of the file")
    made.add_argument("--no-questions", action="store_true")
    made.add_argument("--wait", type=float, default=900.0, metavar="SECONDS", help="how long the worker may take in the end")
    made.add_argument("--json", metavar="OUT", help="writes all figures to a file")
    return made


async def replay(options: argparse.Namespace, samples: list[dict[str, Any]], console: Console) -> list[Report]:
    """Replays all conversations, one after the other, and prints what came of them."""
    config = MemoryClientConfig(base_url=options.base_url, default_context_window_max=options.context_window)
    # Reads without a window show everything that a session holds.
    unlimited = MemoryClientConfig(base_url=options.base_url)
    plans = [(f"{options.run}-{sample['sample_id']}", *read(sample, options.run, options.limit)) for sample in samples]
    reports = [Report(user_id) for user_id, _, _ in plans]
    bars = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    async with MemoryAPIClient(config) as memory, MemoryAPIClient(unlimited) as whole:
        await memory.ready()
        with Progress(*bars, console=console) as progress:
            for report, (_, turns, _) in zip(reports, plans, strict=True):
                await play(memory, report, turns, options, progress)
            started = time.monotonic()
            await settle(memory, options.wait, progress, reports)
            for report in reports:
                report.settled_seconds = time.monotonic() - started
            for report, (_, turns, questions) in zip(reports, plans, strict=True):
                await inspect(memory, whole, report, turns, options)
                if not options.no_questions:
                    await ask(memory, report, questions, progress)
    show(reports, options, console)
    return reports


def read(sample: dict[str, Any], run: str, limit: int | None) -> tuple[list[Turn], list[Question]]:
    """The turns of a conversation in order, and those of its questions whose evidence is among them."""
    conversation = sample["conversation"]
    numbers = sorted(int(key.split("_")[1]) for key in conversation if re.fullmatch(r"session_\d+", key))
    turns: list[Turn] = []
    for number in numbers:
        start = datetime.strptime(conversation[f"session_{number}_date_time"].strip(), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for second, said in enumerate(conversation[f"session_{number}"]):
            shares = f" [shares {said['blip_caption']}]" if said.get("blip_caption") else ""
            message = MemoryMessage(
                id=message_id(run, sample, said["dia_id"]),
                role="user" if said["speaker"] == conversation["speaker_a"] else "assistant",
                content=f"{said['speaker']}: {said['text']}{shares}",
                created_at=start + timedelta(seconds=second),
            )
            turns.append(Turn(number, message))
    turns = turns[:limit]
    known = {turn.message.id for turn in turns}
    questions: list[Question] = []
    for asked in sample.get("qa", []):
        names = {f"D{int(a)}:{int(b)}" for entry in asked["evidence"] for a, b in _EVIDENCE.findall(entry)}
        if evidence := frozenset(message_id(run, sample, name) for name in names) & known:
            questions.append(Question(asked["question"], asked["category"], evidence))
    return turns, questions


def message_id(run: str, sample: dict[str, Any], dia_id: str) -> str:
    """The id of the message of one turn."""
    return f"{run}-{sample['sample_id']}-{dia_id.replace(':', '-')}"


def by_session(user_id: str, turns: list[Turn], per_date: bool) -> Iterator[tuple[str, list[Turn]]]:
    """The sessions of a conversation, with their turns."""
    if not per_date:
        yield user_id, turns
        return
    for number, group in groupby(turns, key=lambda turn: turn.session):
        yield f"{user_id}-s{number}", list(group)


async def play(memory: MemoryAPIClient, report: Report, turns: list[Turn], options: argparse.Namespace, progress: Progress) -> None:
    """Appends every turn, and asks for a prompt every few turns."""
    bar = progress.add_task(report.user_id, total=len(turns))
    started = time.monotonic()
    for session_id, group in by_session(report.user_id, turns, options.session_per_date):
        report.sessions += 1
        for turn in group:
            report.turns += 1
            try:
                done = await memory.append_messages(session_id, [turn.message], user_id=report.user_id)
                report.appended += done.appended
                if options.prompt_every and report.turns % options.prompt_every == 0:
                    query = turn.message.content
                    await memory.memory_prompt(query, session_id=session_id, user_id=report.user_id, long_term_search={"limit": MEMORIES})
                    report.prompts += 1
            except MemoryClientError as error:
                report.errors.append(f"turn {turn.message.id}: {error}")
            progress.advance(bar)
    report.seconds = time.monotonic() - started


async def settle(memory: MemoryAPIClient, seconds: float, progress: Progress, reports: list[Report]) -> None:
    """Waits until the worker has done all that is pending; notes what it has given up, or that time ran out."""
    bar = progress.add_task("the worker's rest", total=None)
    deadline = time.monotonic() + seconds
    while True:
        work: dict[str, dict[str, Any]] = (await memory.ready())["checks"]["work"]
        pending = sum(kind["pending"] for kind in work.values())
        progress.update(bar, description=f"the worker's rest: {pending} pending")
        if not pending or time.monotonic() > deadline:
            break
        await asyncio.sleep(0.2)
    progress.update(bar, total=1, completed=1)
    given_up = {name: kind["dead"] for name, kind in work.items() if kind["dead"]}
    if pending:
        reports[-1].errors.append(f"{pending} pieces of work were still pending after {seconds:.0f} s")
    if given_up:
        reports[-1].errors.append(f"the worker gave work up: {given_up}")


async def inspect(memory: MemoryAPIClient, whole: MemoryAPIClient, report: Report, turns: list[Turn], options: argparse.Namespace) -> None:
    """Compares what was said with what is stored: in the session, in its summary, in long-term memory."""
    remembered: set[str] = set()
    types: Counter[str] = Counter()
    async for record in memory.search_all_long_term_memories("", user_id={"eq": report.user_id}, batch_size=100):
        types[record.memory_type.value] += 1
        remembered.update(record.extracted_from or [])
    report.memories = dict(types)
    for session_id, group in by_session(report.user_id, turns, options.session_per_date):
        session = await whole.get_working_memory(session_id, user_id=report.user_id)
        view = await memory.get_working_memory(session_id, user_id=report.user_id)
        used = view.context_percentage_total_used or 0.0
        report.window_used = max(report.window_used, used)
        if used >= 100.0:
            report.errors.append(f"session {session_id} does not fit into its window of {options.context_window} tokens")
        kept = {message.id for message in session.messages}
        report.left_in_session += len(kept)
        report.summary_characters += len(session.context or "")
        # A summary stands for the oldest messages: all that were said before the first one that the session still holds.
        first = next((place for place, turn in enumerate(group) if turn.message.id in kept), len(group))
        before = group[:first] if session.context else []
        report.summarized += len(before)
        in_range = {turn.message.id for turn in before}
        gone = [turn.message.id for turn in group if turn.message.id not in kept and turn.message.id not in remembered]
        report.in_summary_only += sum(name in in_range for name in gone)
        report.lost += [name for name in gone if name not in in_range]


async def ask(memory: MemoryAPIClient, report: Report, questions: list[Question], progress: Progress) -> None:
    """Asks every question from a session that does not exist yet, so that only long-term memory can answer."""
    bar = progress.add_task(f"{report.user_id}: questions", total=len(questions))
    for question in questions:
        fresh = f"{report.user_id}-questions"
        try:
            prompt = await memory.memory_prompt(
                question.text, session_id=fresh, user_id=report.user_id, long_term_search={"limit": MEMORIES}
            )
        except MemoryClientError as error:
            report.errors.append(f"question {question.text!r}: {error}")
            continue
        hits = {name for record in prompt.long_term_memories or [] for name in record.extracted_from or []}
        report.asked[question.category] = report.asked.get(question.category, 0) + 1
        report.found[question.category] = report.found.get(question.category, 0) + bool(hits & question.evidence)
        progress.advance(bar)


def show(reports: list[Report], options: argparse.Namespace, console: Console) -> None:
    """Prints what was kept, what was found, and whatever went wrong."""
    table = Table("", *(report.user_id.removeprefix(f"{options.run}-") for report in reports), title="Kept")
    rows: dict[str, Callable[[Report], object]] = {
        "turns": lambda report: report.turns,
        "of them new": lambda report: report.appended,
        "seconds": lambda report: f"{report.seconds:.1f}",
        "left in the session": lambda report: report.left_in_session,
        "summarized": lambda report: report.summarized,
        "in the summary only": lambda report: report.in_summary_only,
        "summary, characters": lambda report: report.summary_characters,
        f"% of {options.context_window} tokens": lambda report: f"{report.window_used:.0f}",
        **{f"memories: {kind}": partial(_memories, kind) for kind in sorted({kind for report in reports for kind in report.memories})},
        "lost": lambda report: len(report.lost),
    }
    for name, figure in rows.items():
        table.add_row(name, *(str(figure(report)) for report in reports))
    console.print(table)
    if any(report.asked for report in reports):
        table = Table("questions", "asked", f"evidence among {MEMORIES}", title="Found")
        for category, name in CATEGORIES.items():
            table.add_row(name, *figures(reports, (category,)))
        table.add_row("all but adversarial", *figures(reports, JUDGED), style="bold")
        console.print(table)
    console.print(f"{sum(r.prompts for r in reports)} prompts; the worker was done {reports[-1].settled_seconds:.1f} s after the last turn")
    for report in reports:
        for problem in [*report.errors, *(f"lost: {name}" for name in report.lost)][:20]:
            console.print(f"[red]{report.user_id}: {problem}[/red]")


def _memories(kind: str, report: Report) -> int:
    return report.memories.get(kind, 0)


def figures(reports: list[Report], categories: tuple[int, ...]) -> tuple[str, str]:
    """How many questions of these categories were asked, and the share whose evidence was found."""
    asked = sum(report.asked.get(category, 0) for report in reports for category in categories)
    found = sum(report.found.get(category, 0) for report in reports for category in categories)
    return f"{asked}", f"{found} ({100 * found / asked:.1f} %)" if asked else "-"


if __name__ == "__main__":
    sys.exit(main())
