"""Define `agent-memory export` and `import`: write all data of a user or an agent to a file, and read it back."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator, Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from agent_memory.foundation.core.errors import StartupError
from agent_memory.interfaces.cli.decorators import Answer, asks
from agent_memory.interfaces.cli.options import Agent, Namespace, Owner, say, working

if TYPE_CHECKING:
    from rich.status import Status

    from agent_memory.interfaces.cli.api_client import Api
    from agent_memory_client.resources.features.agents import Agents
    from agent_memory_client.resources.users import Users

_INCOMPLETE = 4
_SHOWN = 20


def _owners(api: Api, *, agents: bool) -> Users | Agents:
    from agent_memory_client.resources.features.agents import Agents
    from agent_memory_client.resources.users import Users

    return (Agents if agents else Users)(api.transport, api.config)


@asks
async def export_owner(
    api: Api,
    owner: Owner,
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="where to (stdout)")] = None,
    namespace: Namespace = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="replace the file")] = False,
    agent: Agent = False,
) -> Answer:
    """Write all data of a user or an agent to a file, one JSON object per line. Servers may keep running."""
    lines = _owners(api, agents=agent).export(owner, namespace)

    async def write(output: BinaryIO) -> dict[str, int]:
        count, line = 0, b"{}"
        with working("exporting") as status:
            async for line in lines:
                api.announce()
                output.write(line + b"\n")
                count += 1
                status.update(f"{count} lines")
        return json.loads(line)["counts"]

    if file is None:
        counts = await write(sys.stdout.buffer)
        say(f"{sum(counts.values())} lines", err=True)
        return Answer(None, [])
    if file.exists() and not force:
        raise StartupError(f"{file} exists: give --force to replace it")
    part = file.with_name(file.name + ".part")
    try:
        # Only the owner may read the file: it contains all data of a person. The file gets its name once it is
        # complete.
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
            counts = await write(output)
        part.replace(file)
    except OSError as error:
        raise StartupError(f"cannot write {file}: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    return Answer({"file": str(file), "counts": counts}, [f"{file}: {_counts(counts)}"])


@asks
async def import_file(
    api: Api,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="file from `export`")],
    user_id: Annotated[str | None, typer.Option("--user", "--user-id", "-u", metavar="ID", help="new owner")] = None,
    agent_id: Annotated[str | None, typer.Option(metavar="ID", help="for an agent's export: new owner")] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", "-n", metavar="NAME", help="put all of it there")] = None,
    source: Annotated[str | None, typer.Option(metavar="NAME", help="a name for a later purge by import source (import)")] = None,
) -> Answer:
    """Import an export without changing existing data. If you specify another user, agent or namespace, import a copy.

    The exit code is 4 if some lines were not imported or the file is incomplete.
    """
    try:
        with file.open("rb") as lines, working("importing") as status:
            header = next(lines, b"")
            owner, is_agent = (user_id or agent_id, not user_id) if user_id or agent_id else _owner(header)
            counted = _counted(chain([header], lines), status)
            report = (await _owners(api, agents=is_agent).import_lines(owner or "", counted, namespace, source)).model_dump(mode="json")
    except OSError as error:
        raise StartupError(f"cannot read {file}: {error.strerror}") from error
    api.announce()
    summary_lines = [f"brought in: {_counts(report['imported'])}", f"here already: {_counts(report['present'])}"]
    summary_lines += [f"vectors: {report['vectors_reused']} kept, {report['vectors_to_embed']} made by a worker"]
    problems = [f"line {each['line']} ({each['kind'] or '?'} {each['id'] or ''}): {each['reason']}" for each in report["problems"]]
    if report["problem_count"] > _SHOWN:
        problems[_SHOWN:] = [f"{report['problem_count']} lines were not taken: --json names up to 1000"]
    if not report["complete"]:
        problems.append("the file is not whole: its last line is missing, or lines before it are")
    say(*problems, err=True)
    return Answer(report, summary_lines, 0 if report["complete"] and not report["problem_count"] else _INCOMPLETE)


def _owner(header: bytes) -> tuple[str, bool]:
    """Return the owner of an export from its first line, and True if the owner is an agent."""
    with suppress(ValueError, AttributeError):
        names = json.loads(header)
        for field in ("user_id", "agent_id"):
            if isinstance(name := names.get(field), str) and name:
                return name, field == "agent_id"
    raise StartupError("the first line does not name a user or an agent: if this is an export, pass --user-id")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "nothing"


def _counted(lines: Iterable[bytes], status: Status) -> Generator[bytes]:
    for count, line in enumerate(lines, 1):
        yield line
        status.update(f"{count} lines")
