"""`agent-memory export` and `import`: everything of a user or an agent to a file, and back."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal
from urllib.parse import quote

import typer
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from agent_memory.foundation.core.errors import StartupError
from agent_memory.interfaces.cli.api_client import Api, MemoryTarget, reach

OK, FAILED, SKIPPED = 0, 1, 4
_PART_LINES = 500
_PART_BYTES = 2 * 1024 * 1024
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class DataOwner:
    """Whose data are meant: a user's, or an agent's ("agent_id")."""

    name: str
    field: Literal["user_id", "agent_id"] = "user_id"

    def path(self, below: str) -> str:
        """The path of an operation on all of it."""
        return f"/v1/{'users' if self.field == 'user_id' else 'agents'}/{quote(self.name, safe='')}/{below}"


def export(target: MemoryTarget, owner: DataOwner, namespace: str | None, file: Path | None, form: str, *, force: bool) -> int:
    """Writes a user's or an agent's data to a file, or to stdout; a file appears when it is whole. Returns the exit code."""
    if file is not None and file.exists() and not force:
        raise StartupError(f"{file} exists: give --force to replace it")
    if file is None:
        if form == "json":
            raise StartupError("--format json needs a FILE: stdout is the export otherwise")
        counts = asyncio.run(_export(target, owner, namespace, sys.stdout.buffer, shown=False))
        typer.echo(f"{sum(counts.values())} lines", err=True)
        return OK
    part = file.with_name(file.name + ".part")
    try:
        # Nobody else's to read: it is all that is known of a person.
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
            counts = asyncio.run(_export(target, owner, namespace, output, shown=form == "text" and sys.stderr.isatty()))
        part.replace(file)
    except OSError as error:
        raise StartupError(f"cannot write {file}: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    if form == "json":
        typer.echo(json.dumps({"file": str(file), "counts": counts}))
    else:
        typer.echo(f"{file}: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return OK


async def _export(target: MemoryTarget, owner: DataOwner, namespace: str | None, output: BinaryIO, *, shown: bool) -> dict[str, int]:
    count, last = 0, b""
    path = owner.path("export")
    async with reach(target) as api:
        with _progress("lines", visible=shown) as advance:
            async for line in _lines(api.stream("POST", path, {"namespace": namespace})):
                output.write(line + b"\n")
                count, last = count + 1, line
                advance(count)
    try:
        end = json.loads(last) if len(last) < 10_000 else {}
    except ValueError:
        end = {}
    if end.get("kind") != "end" or end.get("lines") != count - 1:
        raise StartupError(f"the export broke off after {count} lines: export again")
    return end["counts"]


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line
    if rest:
        yield rest


def bring_in(target: MemoryTarget, file: Path, owner: DataOwner | None, destination: dict[str, str | None], form: str) -> int:
    """Brings a file in; `destination` names the namespace and the import's source.

    Returns the exit code: 4 when some lines were not taken, or the file is not whole.
    """
    try:
        with file.open("rb") as source:
            report = asyncio.run(_import(target, source, owner, destination, shown=form == "text" and sys.stderr.isatty()))
    except OSError as error:
        raise StartupError(f"cannot read {file}: {error.strerror}") from error
    if form == "json":
        typer.echo(json.dumps(report, ensure_ascii=False))
    else:
        _print(report)
    return OK if report["complete"] and not report["problem_count"] else SKIPPED


async def _import(
    target: MemoryTarget, source: Iterable[bytes], owner: DataOwner | None, destination: dict[str, str | None], *, shown: bool
) -> dict[str, Any]:
    whole: dict[str, Any] = {"imported": {}, "present": {}, "problems": [], "problem_count": 0}
    whole |= {"vectors_reused": 0, "vectors_to_embed": 0, "complete": False}
    lines = iter(source)
    header = next(lines, b"").rstrip(b"\r\n")
    path = (owner or _owner(header)).path("import")
    async with reach(target) as api:
        with _progress("lines", visible=shown) as advance:
            for first, part in _parts(lines):
                query = {**destination, "first_line": first}
                _add(whole, await _send(api, path, query, b"\n".join([header, *part])))
                advance(first + len(part) - 1)
    return whole


async def _send(api: Api, path: str, query: dict[str, Any], lines: bytes) -> dict[str, Any]:
    return await api.call("POST", path, query, lines=lines)


def _owner(header: bytes) -> DataOwner:
    try:
        names = json.loads(header)
        user, agent = names.get("user_id"), names.get("agent_id")
    except (ValueError, AttributeError):
        user = agent = None
    if isinstance(user, str) and user:
        return DataOwner(user)
    if isinstance(agent, str) and agent:
        return DataOwner(agent, "agent_id")
    raise StartupError("this is no export of a user or an agent: its first line does not say whose it is; give --user-id if it is one")


def _parts(lines: Iterator[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """The lines after the header in parts, each with the number of its first line."""
    part: list[bytes] = []
    size, first, number = 0, 2, 1
    for number, line in enumerate(lines, start=2):
        if part and (len(part) >= _PART_LINES or size + len(line) > _PART_BYTES):
            yield first, part
            part, size, first = [], 0, number
        part.append(line.rstrip(b"\r\n"))
        size += len(line)
    if part or number == 1:
        yield first, part


def _add(whole: dict[str, Any], part: dict[str, Any]) -> None:
    for name in ("imported", "present"):
        for kind, count in part[name].items():
            whole[name][kind] = whole[name].get(kind, 0) + count
    whole["problems"] = [*whole["problems"], *part["problems"]][:1000]
    for name in ("problem_count", "vectors_reused", "vectors_to_embed"):
        whole[name] += part[name]
    whole["complete"] = whole["complete"] or part["complete"]


def _print(report: dict[str, Any]) -> None:
    for title, counts in (("brought in", report["imported"]), ("here already", report["present"])):
        typer.echo(f"{title}: " + (", ".join(f"{count} {kind}" for kind, count in counts.items()) or "nothing"))
    typer.echo(f"vectors: {report['vectors_reused']} kept, {report['vectors_to_embed']} made by a worker")
    for problem in report["problems"][:_SHOWN]:
        typer.echo(f"line {problem['line']} ({problem['kind'] or '?'} {problem['id'] or ''}): {problem['reason']}", err=True)
    if report["problem_count"] > _SHOWN:
        typer.echo(f"{report['problem_count']} lines were not taken: --format json names up to 1000", err=True)
    if not report["complete"]:
        typer.echo("the file is not whole: its last line is missing, or lines before it are", err=True)


@contextmanager
def _progress(what: str, *, visible: bool) -> Generator[Callable[[int], None]]:
    columns = (TextColumn("{task.completed:.0f} {task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not visible) as bars:
        task = bars.add_task(what, total=None)

        def advance(count: int) -> None:
            bars.update(task, completed=count)

        yield advance
