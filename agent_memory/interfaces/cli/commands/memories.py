"""Define the commands that call the REST API."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

import typer

from agent_memory.foundation.core.listing import counted, shorten, table
from agent_memory.interfaces.cli.decorators import Answer, asks
from agent_memory.interfaces.cli.options import Agent, DryRun, Force, Namespace, Owner, Session, User
from agent_memory.interfaces.cli.output import NOT_FOUND, USAGE, Command, ask, progress, say

if TYPE_CHECKING:
    from agent_memory.interfaces.cli.api_client import Api

_MEMORIES, _SESSIONS, _FORGET = "/v1/long-term-memory", "/v1/working-memory", "/v1/memory/forget"
_PAGE = 100
_Mode = Literal["semantic", "keyword", "hybrid"]
# The archived server's tasks that users can request, each with its path and arguments.
_TASKS = {
    "compact_long_term_memories": (f"{_MEMORIES}/compact", "namespace user_id"),
    "forget_long_term_memories": (f"{_MEMORIES}/forget", "policy namespace user_id session_id limit dry_run pinned_ids"),
    "refresh_summary_view": ("/v1/summary-views/{view_id}/run", "view_id task_id"),
    "refresh_summary_views": ("/v1/summary-views/{view_id}/run", ""),
}
_BODY_ARGUMENTS = ("policy", "pinned_ids", "task_id")

delete = typer.Typer(no_args_is_help=True, help="Delete memories or a session.", rich_markup_mode=None)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, "")}


def _filters(**values: str | None) -> dict[str, Any]:
    return {name: {"eq": value} for name, value in _given(**values).items()}


def _path(start: str, name: str) -> str:
    return f"{start}/{quote(name, safe='')}"


@asks
async def search(
    api: Api,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="query text; if omitted, list the newest memories")] = "",
    namespace: Namespace = None,
    session_id: Session = None,
    user_id: User = None,
    topics: Annotated[str | None, typer.Option("--topics", "-t", metavar="A,B", help="only memories with one of these topics")] = None,
    entities: Annotated[
        str | None, typer.Option("--entities", "-e", metavar="A,B", help="only memories with one of these entities")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-l", min=1, max=100, help="maximum number of memories")] = 10,
    offset: Annotated[int, typer.Option("--offset", "-o", min=0, help="number of memories to skip")] = 0,
    search_mode: Annotated[_Mode | None, typer.Option(help="search by meaning, words or both (default: the server's)")] = None,
    hybrid_alpha: Annotated[float | None, typer.Option(min=0.0, max=1.0, help="weight of meaning, 0 to 1")] = None,
    text_scorer: Annotated[str | None, typer.Option(metavar="NAME", help="text scorer, such as BM25STD")] = None,
    distance_threshold: Annotated[
        float | None, typer.Option("--distance-threshold", "-d", min=0.0, help="maximum cosine distance, 0 to 2")
    ] = None,
) -> Answer:
    """Search long-term memory."""
    options = {"search_mode": search_mode, "hybrid_alpha": hybrid_alpha, "text_scorer": text_scorer}
    body = _filters(namespace=namespace, session_id=session_id, user_id=user_id)
    body |= {"text": query, "limit": limit, "offset": offset, **_given(**options, distance_threshold=distance_threshold)}
    for name, values in (("topics", topics), ("entities", entities)):
        if words := [word.strip() for word in (values or "").split(",") if word.strip()]:
            body[name] = {"any": words}
    answer = await api.call("POST", f"{_MEMORIES}/search", body=body)
    lines: list[str] = []
    for hit in answer["memories"]:
        score = "" if hit["score"] is None else f"  {hit['score']:.3f}"
        about = " ".join(f"{name}={hit[name]}" for name in ("namespace", "user_id", "session_id") if hit[name])
        lines.append(f"{hit['id']}{score}  {hit['created_at'][:10]} {hit['memory_type']}  {about}".rstrip())
        lines.append("    " + " ".join(hit["text"].split()))
    more = "" if answer["next_offset"] is None else f"; more with --offset {answer['next_offset']}"
    return Answer(answer, [*lines, f"{len(answer['memories'])} of {answer['total']}{more}" if lines else "nothing found"])


@asks
async def prompt(
    api: Api,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="the user's message")],
    namespace: Namespace = None,
    session_id: Annotated[str | None, typer.Option("--session-id", "-s", metavar="ID", help="session whose messages to include")] = None,
    user_id: User = None,
    max_tokens: Annotated[int | None, typer.Option(min=64, help="token limit of the prompt")] = None,
) -> Any:
    """Print the memory prompt for a question."""
    body = {"query": query, "long_term_search": _filters(namespace=namespace, user_id=user_id) or True, **_given(max_tokens=max_tokens)}
    if session_id:
        body["session"] = _given(session_id=session_id, namespace=namespace, user_id=user_id)
    return await api.call("POST", "/v1/memory/prompt", body=body)


@asks
async def show(
    api: Api,
    name: Annotated[str, typer.Argument(metavar="ID", help="memory id or, with --session, session id")],
    session: Annotated[bool, typer.Option("--session", help="show the session with this id")] = False,
    namespace: Annotated[str | None, typer.Option("--namespace", "-n", metavar="NAME", help="namespace of the session")] = None,
    user_id: Annotated[str | None, typer.Option("--user", "--user-id", "-u", metavar="ID", help="namespace of the session")] = None,
) -> Any:
    """Print a memory or session. The exit code is 3 if it does not exist."""
    if not session:
        return await api.call("GET", _path(_MEMORIES, name))
    stored = await api.call("GET", _path(_SESSIONS, name), {"namespace": namespace, "user_id": user_id})
    about = "".join(f"  {field}={stored[field]}" for field in ("namespace", "user_id") if stored[field])
    rows = [("summary", stored["context"]), *((message["role"], message["content"]) for message in stored["messages"])]
    rows += [*(("memory", memory["text"]) for memory in stored["memories"]), ("data", stored["data"])]
    texts = [f"{title}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}" for title, value in rows if value]
    return Answer(stored, [f"session {stored['session_id']}{about}", *texts])


@asks
async def top(api: Api) -> Answer:
    """Print background work that is pending, running, or failed."""
    work = (await api.call("GET", "/v1/ready"))["checks"].get("work", {})
    operations = (await api.call("GET", "/v1/operations", {"limit": _PAGE}))["operations"]
    rows = [(kind, counts["pending"], counts["dead"], f"{counts['oldest_seconds']:.0f} s") for kind, counts in work.items()]
    listed = [(operation["id"], operation["kind"], operation["state"]) for operation in operations]
    return Answer({"work": work, "operations": operations}, [*table([("work", "waits", "dead", "oldest"), *rows]), *table(listed)])


@asks
async def forget(
    api: Api,
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="what to forget: 'I am allergic to peanuts', 'my address'")] = None,
    memory_id: Annotated[list[str] | None, typer.Option("--id", metavar="ID", help="memory or message id; may be repeated")] = None,
    user_id: User = None,
    namespace: Namespace = None,
    session_id: Session = None,
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask for confirmation")] = False,
    undo: Annotated[str | None, typer.Option(metavar="RECEIPT", help="restore forgotten memories")] = None,
) -> Answer:
    """Forget facts, the messages they came from, and whole matching messages in live sessions."""
    if undo is not None:
        answer = await api.call("POST", f"{_path(_FORGET, undo)}/undo")
        restored = answer["restored"]
        counts = counted({"memories": restored["memories"], "session_messages": restored["messages"]})
        newer = f"; not restored, because newer data has replaced it: {restored['kept_newer']}" if restored["kept_newer"] else ""
        return Answer(answer, [f"restored: {counts}{newer}"])
    if (text is None) == (not memory_id):
        raise typer.BadParameter("specify what to forget: pass either TEXT or --id")
    body = _given(text=text, ids=memory_id or None, user_id=user_id, namespace=namespace, session_id=session_id)
    preview = await api.call("POST", _FORGET, body=body | {"dry_run": True})
    clear = any(match["clear"] for match in preview["matches"])
    lines = [line for match in preview["matches"] if match["clear"] or preview["ambiguous"] for line in _match_lines(match)]
    if preview["ambiguous"]:
        return Answer(preview, [*lines, "this could mean several things: choose with --id"], USAGE)
    if not clear:
        return Answer(preview, ["no matching memories"], NOT_FOUND)
    if dry_run:
        return Answer(preview, lines)
    say(*lines, err=True)
    ask("Forget this?", force=yes, option="--yes")
    done = await api.call("POST", _FORGET, body=body)
    counts = counted(dict(sorted(done["forgotten"].items())))
    until = done["undo_until"]
    undoing = [f"undo until {until[:16]}Z: agent-memory forget --undo {done['receipt_id']}"] if until else []
    return Answer(done, [f"forgotten: {counts}", *undoing])


def _match_lines(match: Mapping[str, Any]) -> list[str]:
    return [f"{match['kind'].replace('_', ' ')}  {match['id']}  {shorten(match['text'])}", f"    {match['why']}"]


@asks
async def erase(api: Api, owner: Owner, agent: Agent = False, namespace: Namespace = None, force: Force = False) -> Answer:
    """Permanently delete all data of a user or agent. This cannot be undone."""
    where = f" in namespace {namespace}" if namespace else ""
    ask(f"Delete everything of {'agent' if agent else 'user'} {owner}{where} for good?", force=force)
    with progress("erasing"):
        answer = await api.call("DELETE", _path("/v1/agents" if agent else "/v1/users", owner), {"namespace": namespace})
    return Answer(answer, ["erased" if answer["status"] == "ok" else "queued; follow it with `agent-memory top`"])


@asks
async def call(
    api: Api,
    method: Annotated[str, typer.Argument(metavar="METHOD", help="GET, POST, PUT, PATCH or DELETE")],
    path: Annotated[str, typer.Argument(metavar="PATH", help="including the query: '/v1/operations?state=dead'")],
    data: Annotated[str | None, typer.Option("--data", "-d", metavar="JSON", help="request body")] = None,
) -> Answer:
    """Send a request to the REST API and print the response as JSON."""
    try:
        body = None if data is None else json.loads(data)
    except ValueError as error:
        raise typer.BadParameter(f"--data is not JSON: {error}") from None
    answer = await api.call(method.upper(), path, body=body)
    return Answer(answer, json.dumps(answer, ensure_ascii=False, indent=2))


@delete.command(name="memory", cls=Command)
@asks
async def delete_memory(
    api: Api,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="memory ids")] = None,
    empty_text: Annotated[bool, typer.Option("--empty-text", "--invalid", help="memories that have no text")] = False,
    namespace: Namespace = None,
    user_id: User = None,
    dry_run: DryRun = False,
    force: Force = False,
) -> Answer:
    """Delete memories permanently. The exit code is 3 if one of the ids does not exist."""
    if not ids and not empty_text:
        raise typer.BadParameter("name memories by their ids, or give --empty-text")
    scope = _given(namespace=namespace, user_id=user_id)
    memories, missing = await _by_id(api, ids or (), scope)
    memories += await _without_text(api, scope) if empty_text else []
    texts = {memory["id"]: shorten(memory["text"], 80) for memory in memories}
    lines = table([*texts.items()])
    say(*(f"there is no memory {name}" for name in missing), err=True)
    code = NOT_FOUND if missing else 0
    if not texts or dry_run:
        lines.append(f"would be deleted: {counted({'memory': len(texts)})}" if texts else "nothing to delete")
        return Answer({"would_delete": list(texts), "missing": missing}, lines, code)
    say(*lines, err=True)
    ask(f"Delete {counted({'memory': len(texts)})} for good?", force=force)
    deleted, names = 0, list(texts)
    for start in range(0, len(names), _PAGE):
        answer = await api.call("DELETE", _MEMORIES, {"memory_ids": names[start : start + _PAGE]})
        deleted += int("".join(filter(str.isdigit, answer["status"])) or 0)
    return Answer({"deleted": deleted, "missing": missing}, [f"deleted: {counted({'memory': deleted})}"], code)


async def _by_id(api: Api, ids: Iterable[str], scope: Mapping[str, str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the memories with these ids that are in the scope, and the ids that were not found."""
    from agent_memory_client import MemoryNotFoundError

    existing: dict[str, dict[str, Any]] = {}
    for name in ids:
        with contextlib.suppress(MemoryNotFoundError):
            memory = await api.call("GET", _path(_MEMORIES, name))
            existing |= {name: memory} if scope.items() <= memory.items() else {}
    return list(existing.values()), [name for name in ids if name not in existing]


async def _without_text(api: Api, scope: Mapping[str, str]) -> list[dict[str, Any]]:
    body: dict[str, Any] = {"text": "", "limit": _PAGE, "offset": 0, "recency_boost": False, **_filters(**scope)}
    memories: list[dict[str, Any]] = []
    while body["offset"] is not None:
        page = await api.call("POST", f"{_MEMORIES}/search", body=body)
        memories += [memory for memory in page["memories"] if not memory["text"].strip()]
        body["offset"] = page["next_offset"]
    return memories


@delete.command(name="session", cls=Command)
@asks
async def delete_session(
    api: Api,
    session_id: Annotated[str, typer.Argument(metavar="ID", help="the session's id")],
    namespace: Namespace = None,
    user_id: User = None,
    force: Force = False,
) -> Answer:
    """Delete a session but not its long-term memories. The exit code is 3 if it does not exist."""
    path = _path(_SESSIONS, session_id)
    session = await api.call("GET", path, {"namespace": namespace, "user_id": user_id})
    owner = {"namespace": session["namespace"], "user_id": session["user_id"]}
    about = "".join(f"{name}={value}, " for name, value in owner.items() if value)
    ask(f"Delete session {session_id} ({about}{counted({'message': len(session['messages'])})})?", force=force)
    return Answer(await api.call("DELETE", path, owner), [f"deleted session {session_id}"])


@asks
async def schedule_task(
    api: Api,
    task: Annotated[str, typer.Argument(metavar="TASK", help="a task from the archived server: its path or just its name")],
    args: Annotated[list[str] | None, typer.Option("--args", "-a", metavar="NAME=VALUE", help="an argument; may be repeated")] = None,
) -> Any:
    """Request compaction, forgetting, or a refresh of summary views.

    Workers also run these tasks when they are due.
    """
    given = dict(_argument(argument) for argument in args or ())
    name = task.replace(":", ".").rpartition(".")[2].removeprefix("periodic_")
    if name not in _TASKS:
        raise typer.BadParameter(f"there is no task {name}; use one of: {', '.join(_TASKS)}")
    path, argument_names = _TASKS[name]
    if unknown := sorted(given.keys() - argument_names.split()):
        raise typer.BadParameter(f"{name} has no argument {unknown[0]}: it has {', '.join(sorted(argument_names.split()))}")
    if "view_id" in argument_names and "view_id" not in given:
        raise typer.BadParameter("refresh_summary_view needs --args view_id=…")
    views = [given.pop("view_id")] if "view_id" in argument_names else []
    body = {argument: given.pop(argument) for argument in _BODY_ARGUMENTS if argument in given}
    if name == "refresh_summary_views":
        views = [view["id"] for view in await api.call("GET", "/v1/summary-views")]
    elif name == "forget_long_term_memories":
        body = {"policy": {}, **body}
    paths = [path.format(view_id=quote(view, safe="")) for view in views] if "{" in path else [path]
    answers = [await api.call("POST", each, given, body) for each in paths]
    return answers if name == "refresh_summary_views" else answers[0]


def _argument(text: str) -> tuple[str, Any]:
    name, joint, value = text.partition("=")
    if not joint or not name:
        raise typer.BadParameter(f"--args {text}: write name=value")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
