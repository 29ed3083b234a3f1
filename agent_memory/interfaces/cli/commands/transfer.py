"""Define `agent-memory export` and `import`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Generator, Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from agent_memory.features.transfer.import_report import owner_of_export, problem_lines, summary_lines
from agent_memory.features.transfer.sources.order import SOURCES, MoveIn
from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.listing import counted
from agent_memory.interfaces.cli.decorators import Answer, asks, prints
from agent_memory.interfaces.cli.options import Agent, Namespace, Owner
from agent_memory.interfaces.cli.output import progress, say

if TYPE_CHECKING:
    from agent_memory.interfaces.cli.api_client import Api
    from agent_memory_client.resources.features.agents import Agents
    from agent_memory_client.resources.users import Users

_INCOMPLETE = 4


def _owners(api: Api, *, agents: bool) -> Users | Agents:
    from agent_memory_client.resources.features.agents import Agents
    from agent_memory_client.resources.users import Users

    return (Agents if agents else Users)(api.transport, api.config)


@asks
async def export_owner(
    api: Api,
    owner: Owner,
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="output file (default: stdout)")] = None,
    namespace: Namespace = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="overwrite the file")] = False,
    agent: Agent = False,
) -> Answer:
    """Write all data of a user or agent to a file, as JSON Lines. Servers may keep running."""
    lines = _owners(api, agents=agent).export(owner, namespace)

    async def write(output: BinaryIO) -> dict[str, int]:
        count, line = 0, b"{}"
        with progress("exporting", shown=file is not None) as update:
            async for line in lines:
                api.announce()
                output.write(line + b"\n")
                count += 1
                update(description=f"exporting: {counted({'line': count})}")
        return {name: count for name, count in json.loads(line)["counts"].items() if name != "header"}

    if file is None:
        counts = await write(sys.stdout.buffer)
        say(f"exported: {counted(counts)}", err=True)
        return Answer(None, [])
    if file.exists() and not force:
        raise StartupError(f"{file} exists: give --force to replace it")
    part = file.with_name(file.name + ".part")
    try:
        # Only the owner may read the file, which contains personal data. It gets its name once it is complete.
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
            counts = await write(output)
        part.replace(file)
    except OSError as error:
        raise StartupError(f"cannot write {file}: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    return Answer({"file": str(file), "counts": counts}, [f"{file}: {counted(counts)}"])


@asks
async def import_file(
    api: Api,
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILE", help="file from `export` or from another system")] = None,
    origin: Annotated[
        str | None, typer.Option("--from", metavar="SYSTEM", help=f"system that wrote the files: {', '.join(SOURCES)}")
    ] = None,
    user_id: Annotated[str | None, typer.Option("--user", "--user-id", "-u", metavar="ID", help="new owner")] = None,
    agent_id: Annotated[str | None, typer.Option(metavar="ID", help="for an agent's export: new owner")] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", "-n", metavar="NAME", help="target namespace")] = None,
    source: Annotated[str | None, typer.Option(metavar="NAME", help="name for an undo or purge (default: derived from the files)")] = None,
    columns: Annotated[
        list[str] | None, typer.Option("--map", metavar="OURS=THEIRS", help="with --from: map their column to our field")
    ] = None,
    extract: Annotated[bool, typer.Option("--extract", help="with --from: a model extracts facts from conversations")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="with --from: only report what would be imported")] = False,
    undo: Annotated[str | None, typer.Option(metavar="NAME", help="delete what the import with this name created")] = None,
) -> Answer:
    """Import an export, or files from another system. Existing data does not change.

    If you specify another user, agent or namespace, it gets a copy. The exit code is 4 if some
    lines were not imported or the file is incomplete.
    """
    if undo is not None:
        return await _undo(api, undo, namespace, user_id, dry_run=dry_run)
    if not files or (origin is None and (len(files) > 1 or columns or extract or dry_run)):
        raise StartupError("name one FILE from `export`, or specify with --from whose files they are")
    if origin is not None:
        mapping = {field: column_name for field, _, column_name in (column.partition("=") for column in columns or ())}
        return await _move_in(api, MoveIn(origin, files, user_id, namespace, mapping, extract, source), dry_run=dry_run)
    try:
        with files[0].open("rb") as lines, progress("importing", files[0].stat().st_size) as update:
            header = next(lines, b"")
            owner, is_agent = (user_id or agent_id, not user_id) if user_id or agent_id else owner_of_export(header)
            sent = _sent(chain([header], lines), update)
            report = await _owners(api, agents=is_agent).import_lines(owner or "", sent, namespace, source)
    except OSError as error:
        raise StartupError(f"cannot read {files[0]}: {error.strerror}") from error
    say(*problem_lines(report), err=True)
    code = 0 if report.complete and not report.problem_count else _INCOMPLETE
    return Answer(report.model_dump(mode="json"), summary_lines(report), code)


@prints
def migrate_prompt() -> Answer:
    """Print a coding agent's prompt for migrating from Mem0, Zep, Letta or the archived server."""
    from importlib.resources import files

    text = files("agent_memory.features.transfer").joinpath("migrate_prompt.md").read_text("utf-8").rstrip()
    return Answer({"prompt": text}, text)


async def _move_in(api: Api, order: MoveIn, *, dry_run: bool) -> Answer:
    from agent_memory.features.transfer.sources.moving import Moving
    from agent_memory_client._wire.transfers import add_up_reports

    with Moving(order) as moving, progress("reading") as update:
        for count in moving.read():
            update(description=f"reading: {counted({'record': count})}")
        update(description="importing", total=moving.size)
        reports = [
            await _owners(api, agents=user is None).import_lines(
                user or agent or "", _sent(moving.lines((user, agent)), update), order.namespace, order.name
            )
            for user, agent in (() if dry_run else moving.owners)
        ]
        result = moving.result(add_up_reports(reports), dry_run=dry_run)
    say(*result.problems, err=True)
    return Answer(result.data, result.lines, _INCOMPLETE if result.problems else 0)


async def _undo(api: Api, name: str, namespace: str | None, user_id: str | None, *, dry_run: bool) -> Answer:
    query = {"namespace": namespace, "user_id": user_id, "dry_run": dry_run, "wait": 20}
    answer = await api.call("POST", "/v1/long-term-memory/purge", query, {"import_source": name, "unchanged": True})
    counts: dict[str, int] | None = answer["counts"]
    if counts is None:
        return Answer(answer, [f"queued: operation {answer['operation_id']}; follow it with `agent-memory top`"])
    deleted = {name: counts.get(name, 0) for name in ("messages", "sessions", "blocks", "files")}
    text = counted({"memories": counts["matched"] + counts["inferred"], **deleted})
    return Answer(answer, [f"{'would be deleted' if dry_run else 'deleted'}: {text}"])


def _sent(lines: Iterable[bytes], update: Callable[..., object]) -> Generator[bytes]:
    for line in lines:
        yield line
        update(advance=len(line))
