"""The commands that look after data: what they are called and which options they have. What they do stands in modules of their own.

Nothing heavy is imported at the top of this file, as in `app.py`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote

import typer

# The archived server's settings of its keys, with its defaults.
_MEMORY_PREFIX = ("REDISVL_INDEX_PREFIX", "memory_idx")
_SESSION_PREFIX = ("WORKING_MEMORY_INDEX_PREFIX", "working_memory:")

Url = Annotated[
    str | None,
    typer.Option("--url", envvar="AGENT_MEMORY_URL", metavar="URL", help="a running server (otherwise the configured Redis is opened)"),
]
ApiKey = Annotated[str | None, typer.Option("--api-key", envvar="AGENT_MEMORY_API_KEY", metavar="KEY", help="for that server")]
Namespace = Annotated[str | None, typer.Option("--namespace", "-n", metavar="NAME", help="only this namespace")]
User = Annotated[str | None, typer.Option("--user", "--user-id", "-u", metavar="ID", help="only this user")]
Force = Annotated[bool, typer.Option("--force", "-f", help="do not ask first")]
Format = Annotated[Literal["text", "json"], typer.Option("--format", help="json: nothing else on stdout")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(migrate)
    app.command(name="migrate-memories")(migrate_memories)
    app.command(name="migrate-working-memory")(migrate_working_memory)
    app.command()(search)
    delete = typer.Typer(no_args_is_help=True, help="Delete memories or a session.", rich_markup_mode=None)
    delete.command(name="memory")(delete_memory)
    delete.command(name="session")(delete_session)
    app.add_typer(delete, name="delete")
    app.command(name="export")(export_user)
    app.command(name="import")(import_user)
    app.command()(forget)
    app.command()(prompt)
    app.command()(show)
    app.command()(top)
    app.command()(erase)
    app.command()(call)
    app.command(name="rebuild-index")(rebuild_index)
    app.command(name="accept-store")(accept_store)
    app.command(name="schedule-task")(schedule_task)
    app.command(name="task-worker")(task_worker)


def migrate(
    source: Annotated[str | None, typer.Option("--from", metavar="URL", help="the old server's Redis (REDIS_URL)")] = None,
    target: Annotated[str | None, typer.Option("--to", metavar="URL", help="our Redis (REDIS_URL, else the embedded one)")] = None,
    data_dir: Annotated[str | None, typer.Option(metavar="DIR", help="where the embedded Redis keeps its data [env: DATA_DIR]")] = None,
    tenant: Annotated[str, typer.Option(metavar="NAME", help="the tenant that gets the data")] = "default",
    memory_prefix: Annotated[
        str, typer.Option(envvar=_MEMORY_PREFIX[0], metavar="PREFIX", help="begin of the old memories' keys")
    ] = _MEMORY_PREFIX[1],
    session_prefix: Annotated[
        str, typer.Option(envvar=_SESSION_PREFIX[0], metavar="PREFIX", help="begin of the old sessions' keys")
    ] = _SESSION_PREFIX[1],
    vectors: Annotated[
        Literal["auto", "reuse", "embed"],
        typer.Option(help="auto: kept where a comparison shows the same model; reuse: always, if the length fits; embed: made anew"),
    ] = "auto",
    extract: Annotated[
        bool, typer.Option("--extract/--no-extract", help="whether messages that the old server took no facts from become memories here")
    ] = True,
    yes: Annotated[bool, typer.Option("--yes/--dry-run", "-y", help="move; without it, only say what would happen")] = False,
    restart: Annotated[bool, typer.Option("--restart", help="begin again instead of going on with an unfinished move")] = False,
    form: Format = "text",
) -> None:
    """Move in from the archived server: reads its Redis, never changes it, and can be run as often as you like."""
    from agent_memory.interfaces.cli.commands import migrate as moving

    options = moving.MoveOptions(dry_run=not yes, vectors=vectors, extract=extract, restart=restart)
    prefixes = moving.OldPrefixes(memory_prefix, session_prefix)
    moving.migrate(data_dir or None, moving.MigrationOptions(source, target, tenant, prefixes, options, form))


def migrate_memories(
    yes: Annotated[bool, typer.Option("--yes/--dry-run", "-y", help="move; without it, only say what would happen")] = False,
) -> None:
    """The archived server's name for `migrate`, with its defaults."""
    _migrate_as_before(yes, None)


def migrate_working_memory(
    batch_size: Annotated[int | None, typer.Option("--batch-size", min=1, help="keys that are looked at together")] = None,
    yes: Annotated[bool, typer.Option("--yes/--dry-run", "-y", help="move; without it, only say what would happen")] = False,
) -> None:
    """The archived server's name for `migrate`, with its defaults."""
    _migrate_as_before(yes, batch_size)


def _migrate_as_before(yes: bool, page: int | None) -> None:
    from agent_memory.interfaces.cli.commands import migrate as moving

    typer.echo("all data moves together: this is `agent-memory migrate`, which first says what would happen", err=True)
    old = [os.environ.get(name) or default for name, default in (_MEMORY_PREFIX, _SESSION_PREFIX)]
    options = moving.MoveOptions(dry_run=not yes, page=page)
    moving.migrate(None, moving.MigrationOptions(None, None, "default", moving.OldPrefixes(*old), options, "text"))


def search(
    query: Annotated[str, typer.Argument(help="what is looked for; nothing lists the newest")] = "",
    namespace: Namespace = None,
    session_id: Annotated[str | None, typer.Option("--session-id", "-s", metavar="ID", help="only this session")] = None,
    user_id: User = None,
    topics: Annotated[str | None, typer.Option("--topics", "-t", metavar="A,B", help="any of these topics")] = None,
    entities: Annotated[str | None, typer.Option("--entities", "-e", metavar="A,B", help="any of these entities")] = None,
    limit: Annotated[int, typer.Option("--limit", "-l", min=1, max=100, help="most memories")] = 10,
    offset: Annotated[int, typer.Option("--offset", "-o", min=0, help="memories to skip")] = 0,
    search_mode: Annotated[
        Literal["semantic", "keyword", "hybrid"] | None, typer.Option(help="by meaning, by words, by both (as the server searches)")
    ] = None,
    hybrid_alpha: Annotated[float | None, typer.Option(min=0.0, max=1.0, help="weight of the meaning")] = None,
    text_scorer: Annotated[str | None, typer.Option(metavar="NAME", help="scorer of words, BM25STD for one")] = None,
    distance_threshold: Annotated[
        float | None, typer.Option("--distance-threshold", "-d", min=0.0, help="largest cosine distance, 0 to 2")
    ] = None,
    form: Format = "text",
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """Search long-term memory."""
    from agent_memory.interfaces.cli.commands import memories

    filters = {"namespace": namespace, "session_id": session_id, "user_id": user_id}
    body: dict[str, object] = {name: {"eq": value} for name, value in filters.items() if value}
    for name, values in (("topics", topics), ("entities", entities)):
        if wanted := [value.strip() for value in (values or "").split(",") if value.strip()]:
            body[name] = {"any": wanted}
    body |= {"text": query, "limit": limit, "offset": offset}
    options = {
        "search_mode": search_mode,
        "hybrid_alpha": hybrid_alpha,
        "text_scorer": text_scorer,
        "distance_threshold": distance_threshold,
    }
    body |= {name: value for name, value in options.items() if value is not None}
    memories.search(memories.MemoryTarget(url, api_key), body, form)


def prompt(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="what the user asks")],
    namespace: Namespace = None,
    session_id: Annotated[str | None, typer.Option("--session-id", "-s", metavar="ID", help="whose messages are shown")] = None,
    user_id: User = None,
    max_tokens: Annotated[int | None, typer.Option(min=64, help="of the whole prompt")] = None,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """Print the memory prompt for a question as JSON."""
    filters = {name: {"eq": value} for name, value in (("namespace", namespace), ("user_id", user_id)) if value}
    body: dict[str, object] = {"query": query, "long_term_search": filters or True}
    if session_id:
        whose = {"session_id": session_id, "namespace": namespace, "user_id": user_id}
        body["session"] = {name: value for name, value in whose.items() if value}
    _print_answer("POST", "/v1/memory/prompt", body | ({"max_tokens": max_tokens} if max_tokens else {}), url, api_key)


def show(memory_id: Annotated[str, typer.Argument(metavar="ID", help="the memory's id")], url: Url = None, api_key: ApiKey = None) -> None:
    """Print a memory as JSON. Exit code 3 if it is not there."""
    _print_answer("GET", f"/v1/long-term-memory/{quote(memory_id, safe='')}", None, url, api_key)


def top(url: Url = None, api_key: ApiKey = None) -> None:
    """Print the background work that waits or runs, as JSON."""
    _print_answer("GET", "/v1/operations?limit=100", None, url, api_key)


def erase(
    owner: Annotated[str, typer.Argument(metavar="USER", help="whose data; with --agent an agent's name")],
    agent: Annotated[bool, typer.Option("--agent", help="everything of the agent of that name")] = False,
    namespace: Namespace = None,
    force: Force = False,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """Delete everything of a user or an agent for good; there is no undo."""
    from agent_memory.interfaces.cli.confirmation import ask

    where = f" in namespace {namespace}" if namespace else ""
    ask(f"Delete everything of {'agent' if agent else 'user'} {owner}{where} for good?", force=force)
    query = f"?namespace={quote(namespace, safe='')}" if namespace else ""
    _print_answer("DELETE", f"/v1/{'agents' if agent else 'users'}/{quote(owner, safe='')}{query}", None, url, api_key)


def call(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="GET, POST, PUT, PATCH or DELETE")],
    path: Annotated[str, typer.Argument(metavar="PATH", help="with its query: '/v1/operations?state=dead'")],
    data: Annotated[str | None, typer.Option("--data", "-d", metavar="JSON", help="the body")] = None,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """Send a request to the REST API and print its answer as JSON."""
    try:
        body = None if data is None else json.loads(data)
    except ValueError as error:
        raise typer.BadParameter(f"--data is not JSON: {error}") from None
    _print_answer(method.upper(), path, body, url, api_key)


def _print_answer(method: str, path: str, body: object, url: str | None, api_key: str | None) -> None:
    from agent_memory.interfaces.cli.commands import memories

    answer = memories.answer_of(memories.MemoryTarget(url, api_key), method, path, body)
    typer.echo(json.dumps(answer, ensure_ascii=False, indent=2))


def delete_memory(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="ids of memories")] = None,
    empty_text: Annotated[bool, typer.Option("--empty-text", help="those without a text")] = False,
    invalid: Annotated[bool, typer.Option("--invalid", help="those that could not be stored any more: without a text")] = False,
    namespace: Namespace = None,
    user_id: User = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only say what would go")] = False,
    force: Force = False,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """Delete memories for good. Exit code 3 if one that is named is not there."""
    from agent_memory.interfaces.cli.commands import memories

    if not ids and not (empty_text or invalid):
        raise typer.BadParameter("name memories by their ids, or give --empty-text")
    doomed = memories.DeletionSelection(ids or (), empty_text or invalid, namespace, user_id)
    raise typer.Exit(memories.delete_memories(memories.MemoryTarget(url, api_key), doomed, dry_run=dry_run, force=force))


def delete_session(
    session_id: Annotated[str, typer.Argument(metavar="ID", help="the session's id")],
    namespace: Namespace = None,
    user_id: User = None,
    force: Force = False,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """Delete a session; its long-term memories stay. Exit code 3 if it is not there."""
    from agent_memory.interfaces.cli.commands import memories

    raise typer.Exit(memories.delete_session(memories.MemoryTarget(url, api_key), session_id, namespace, user_id, force=force))


def export_user(
    user_id: Annotated[str, typer.Argument(metavar="USER", help="whose data; with --agent an agent's name")],
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="where to (stdout)")] = None,
    namespace: Namespace = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="replace the file")] = False,
    agent: Annotated[bool, typer.Option("--agent", help="everything of the agent of that name")] = False,
    url: Url = None,
    api_key: ApiKey = None,
    form: Format = "text",
) -> None:
    """Write everything of a user or an agent to a file, one JSON object per line, while others use the server."""
    from agent_memory.interfaces.cli.commands import transfer

    owner = transfer.DataOwner(user_id, "agent_id" if agent else "user_id")
    raise typer.Exit(transfer.export(transfer.MemoryTarget(url, api_key), owner, namespace, file, form, force=force))


def import_user(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="what `export` wrote")],
    user_id: Annotated[
        str | None, typer.Option("--user", "--user-id", "-u", metavar="ID", help="whose data it becomes (whose it was)")
    ] = None,
    agent_id: Annotated[str | None, typer.Option(metavar="ID", help="of an agent's export: whose it becomes (whose it was)")] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", "-n", metavar="NAME", help="put all of it there")] = None,
    source: Annotated[str | None, typer.Option(metavar="NAME", help="where it comes from, for `purge --import-source` (import)")] = None,
    url: Url = None,
    api_key: ApiKey = None,
    form: Format = "text",
) -> None:
    """Bring an export in, for another user, agent or namespace as a copy; what is here stays as it is.

    Exit code 4 when some lines were not taken or the file is not whole.
    """
    from agent_memory.interfaces.cli.commands import transfer

    owner = transfer.DataOwner(user_id) if user_id else transfer.DataOwner(agent_id, "agent_id") if agent_id else None
    destination = {"namespace": namespace, "import_source": source}
    raise typer.Exit(transfer.bring_in(transfer.MemoryTarget(url, api_key), file, owner, destination, form))


def forget(
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="what is meant: 'I am allergic to peanuts', 'my address'")] = None,
    memory_id: Annotated[list[str] | None, typer.Option("--id", metavar="ID", help="exactly this; may be repeated")] = None,
    user_id: Annotated[str | None, typer.Option("--user", "--user-id", "-u", metavar="ID", help="whose memories are meant")] = None,
    namespace: Namespace = None,
    session_id: Annotated[str | None, typer.Option("--session-id", "-s", metavar="ID", help="only what was said in it")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only show what would go")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask")] = False,
    undo: Annotated[str | None, typer.Option(metavar="RECEIPT", help="bring back what went")] = None,
    url: Url = None,
    api_key: ApiKey = None,
    form: Format = "text",
) -> None:
    """Forget what is named: facts, the messages they rest on, and the sentence in live sessions."""
    from agent_memory.interfaces.cli.commands import forget as command

    target = command.MemoryTarget(url, api_key)
    if undo is not None:
        command.undo(target, undo)
        return
    if (text is None) == (not memory_id):
        raise typer.BadParameter("say what is to be forgotten: either TEXT or --id")
    values = {"text": text, "ids": memory_id or None, "user_id": user_id, "namespace": namespace, "session_id": session_id}
    body = {name: value for name, value in values.items() if value is not None}
    raise typer.Exit(command.forget(target, body, dry_run=dry_run, yes=yes, form=form))


def rebuild_index(
    redis_url: Annotated[str | None, typer.Option("--redis-url", metavar="URL", help="our Redis [env: REDIS_URL]")] = None,
    data_dir: Annotated[str | None, typer.Option("--data-dir", metavar="DIR", help="of the embedded Redis [env: DATA_DIR]")] = None,
    embed: Annotated[bool, typer.Option("--embed", help="also let workers make every vector anew")] = False,
    form: Format = "text",
) -> None:
    """Build the search indexes anew from what is stored. Stop the servers and workers first."""
    from agent_memory.interfaces.cli.commands import rebuild_index as rebuild

    rebuild.rebuild(redis_url or None, data_dir or None, embed=embed, form=form)


def schedule_task(
    task: Annotated[str, typer.Argument(metavar="TASK", help="a task of the archived server, by its path or its name alone")],
    args: Annotated[list[str] | None, typer.Option("--args", "-a", metavar="NAME=VALUE", help="an argument; may be repeated")] = None,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """Order a compaction, forgetting or the refresh of summary views now; workers do what is due by themselves."""
    from agent_memory.interfaces.cli.commands import memories

    raise typer.Exit(memories.schedule(memories.MemoryTarget(url, api_key), task, args or ()))


def task_worker(
    concurrency: Annotated[int | None, typer.Option(min=1, help="tasks at one time [env: WORKER_CONCURRENCY]")] = None,
    redelivery_timeout: Annotated[
        int | None, typer.Option(min=1, help="seconds until a dead worker's task is taken over [env: WORKER_REDELIVERY_TIMEOUT_SECONDS]")
    ] = None,
) -> None:
    """The archived server's name for `worker`."""
    from agent_memory.interfaces.cli import run

    variables = {"WORKER_CONCURRENCY": concurrency, "WORKER_REDELIVERY_TIMEOUT_SECONDS": redelivery_timeout}
    run.worker({name: str(value) for name, value in variables.items() if value is not None})


def accept_store(
    redis_url: Annotated[str | None, typer.Option(metavar="URL", help="the Redis that holds the store [env: REDIS_URL]")] = None,
    data_dir: Annotated[str | None, typer.Option(metavar="DIR", help="where the embedded Redis keeps its data [env: DATA_DIR]")] = None,
) -> None:
    """Say that the store that Redis holds now is the right one, though it is empty or another than before: servers go on with it."""
    from agent_memory.interfaces.cli.commands import accept_store as accepting

    variables = {"REDIS_URL": redis_url, "DATA_DIR": data_dir}
    accepting.accept({name: value for name, value in variables.items() if value})
