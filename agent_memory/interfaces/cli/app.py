"""The command line: `agent-memory serve | api | worker | mcp | redis | doctor | health | version`; others stand in `admin.py`.

Nothing heavy is imported at the top of this file: `agent-memory --help` must not wait for the server's libraries.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from agent_memory import __version__
from agent_memory.foundation.core import garbage_collection
from agent_memory.foundation.core.errors import AgentMemoryError, NotFound
from agent_memory.interfaces.cli import admin, token_commands

_NOT_THERE = 3

_GROUPS = {
    "Run": ("serve", "api", "worker", "mcp", "redis"),
    "Look": ("search", "prompt", "show", "doctor", "top", "health", "version"),
    "Change": ("forget", "export", "import", "erase", "delete", "token"),
    "Operate": ("migrate", "rebuild-index", "accept-store"),
    "Everything else": ("call",),
    "Names of the archived server": ("migrate-memories", "migrate-working-memory", "schedule-task", "task-worker"),
}
"""The commands by what they are for."""


class _GroupedCommands(TyperGroup):
    """Commands in groups, each with its whole first line."""

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """See click."""
        for title, names in _GROUPS.items():
            commands = [(name, self.commands[name]) for name in names if name in self.commands]
            rows = [(name, command.get_short_help_str(limit=1000)) for name, command in commands if not command.hidden]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


app = typer.Typer(
    name="agent-memory",
    cls=_GroupedCommands,
    help="The self-hosted memory server for AI agents. Every setting is also an environment variable (see each command's --help).",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _option(name: str, metavar: str, text: str, variable: str) -> typer.models.OptionInfo:
    """An option that stands for an environment variable. Its value is checked with the settings, which say in one line what is wrong."""
    return typer.Option(name, metavar=metavar, help=f"{text} [env: {variable}]", show_default=False)


def _user_option(text: str) -> typer.models.OptionInfo:
    return typer.Option("--user", "--user-id", metavar="NAME", help=text, show_default=False)


# Named like the setting; `None` leaves it to the environment, `.env` or the default.
_SETTINGS: dict[str, Any] = {
    "HOST": _option("--host", "HOST", "address to listen on (127.0.0.1)", "HOST"),
    "PORT": _option("--port", "PORT", "port to listen on (8000)", "PORT"),
    "MCP_HOST": _option("--host", "HOST", "address to listen on (127.0.0.1)", "MCP_HOST"),
    "MCP_PORT": _option("--port", "PORT", "port to listen on (9000)", "MCP_PORT"),
    "DEFAULT_MCP_NAMESPACE": _option("--namespace", "NAME", "of calls that name none", "DEFAULT_MCP_NAMESPACE"),
    "DEFAULT_MCP_USER_ID": _user_option("of calls that name none [env: DEFAULT_MCP_USER_ID]"),
    "DATA_DIR": _option("--data-dir", "DIR", "where the embedded Redis keeps its data (agent-memory-data)", "DATA_DIR"),
    "REDIS_URL": _option("--redis-url", "URL", "a Redis with the query engine, instead of the embedded one", "REDIS_URL"),
    "EMBEDDED_REDIS_PORT": _option("--embedded-redis-port", "PORT", "its port (a free one)", "EMBEDDED_REDIS_PORT"),
    "KEY_PREFIX": _option("--key-prefix", "WORD", "begin of every key in Redis (am)", "KEY_PREFIX"),
    "MODEL_PROVIDER": _option("--model-provider", "NAME", "auto, openai or local (auto)", "MODEL_PROVIDER"),
    "OPENAI_BASE_URL": _option("--openai-base-url", "URL", "any OpenAI-compatible server", "OPENAI_BASE_URL"),
    "GENERATION_MODEL": _option("--generation-model", "MODEL", "writes summaries and facts", "GENERATION_MODEL"),
    "EMBEDDING_MODEL": _option("--embedding-model", "MODEL", "embeds memories and queries", "EMBEDDING_MODEL"),
    "WORKER_CONCURRENCY": _option("--concurrency", "N", "tasks of a worker at one time (40)", "WORKER_CONCURRENCY"),
    "SHUTDOWN_GRACE_SECONDS": _option("--grace", "SECONDS", "for what runs when we are stopped (20)", "SHUTDOWN_GRACE_SECONDS"),
    "LOG_LEVEL": _option("--log-level", "LEVEL", "DEBUG, INFO, WARNING, ERROR (INFO)", "LOG_LEVEL"),
    "LOG_FORMAT": _option("--log-format", "FORMAT", "console or json (console)", "LOG_FORMAT"),
    "ACCESS_LOG": typer.Option("--access-log/--no-access-log", help="a line in the log for each request (yes) [env: ACCESS_LOG]"),
}
_MODELS = ("KEY_PREFIX", "MODEL_PROVIDER", "OPENAI_BASE_URL", "GENERATION_MODEL", "EMBEDDING_MODEL")
_PROCESS = ("SHUTDOWN_GRACE_SECONDS", "LOG_LEVEL", "LOG_FORMAT")

ServerUrl = Annotated[
    str | None,
    typer.Option("--url", envvar="AGENT_MEMORY_URL", metavar="URL", help="where the API listens (http://127.0.0.1:PORT)"),
]


def _with_settings(*variables: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each of these settings; it gets those that were given as its first argument, by variable."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(**values: Any) -> None:
            given = {name: values.pop(name.lower()) for name in variables}
            command({name: str(value) for name, value in given.items() if value not in (None, "")}, **values)

        own = list(signature(command, eval_str=True).parameters.values())[1:]
        kinds = {name: bool if name == "ACCESS_LOG" else str for name in variables}
        options = [
            Parameter(name.lower(), Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kinds[name] | None, _SETTINGS[name]])
            for name in variables
        ]
        parameters = [*options, *(each.replace(kind=Parameter.KEYWORD_ONLY) for each in own)]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        setattr(run, "__signature__", Signature(parameters))  # noqa: B010 - functions have no such attribute for type checkers
        return run

    return decorate


@app.command()
@_with_settings("HOST", "PORT", "DATA_DIR", "REDIS_URL", "EMBEDDED_REDIS_PORT", *_MODELS, "WORKER_CONCURRENCY", *_PROCESS, "ACCESS_LOG")
def serve(given: dict[str, str]) -> None:
    """Run everything in one process: the API, a worker, and Redis unless REDIS_URL is given."""
    garbage_collection.starting()
    from agent_memory.interfaces.cli import run

    run.serve(given)


@app.command()
@_with_settings("HOST", "PORT", "REDIS_URL", *_MODELS, *_PROCESS, "ACCESS_LOG")
def api(
    given: dict[str, str],
    task_backend: Annotated[
        Literal["docket", "asyncio"], typer.Option(help="docket: workers are other processes; asyncio: a worker runs in this one")
    ] = "docket",
    no_worker: Annotated[bool, typer.Option("--no-worker", hidden=True, help="as --task-backend docket, the default")] = False,
) -> None:
    """Run only the API, against the Redis of REDIS_URL. Any number of them share one Redis."""
    garbage_collection.starting()
    from agent_memory.interfaces.cli import run

    run.api(given, with_worker=task_backend == "asyncio" and not no_worker)


@app.command()
@_with_settings("REDIS_URL", *_MODELS, "WORKER_CONCURRENCY", *_PROCESS)
def worker(given: dict[str, str]) -> None:
    """Run only a worker, against the Redis of REDIS_URL. Any number of them share the work."""
    garbage_collection.starting()
    from agent_memory.interfaces.cli import run

    run.worker(given)


@app.command()
@_with_settings("MCP_HOST", "MCP_PORT", "DEFAULT_MCP_NAMESPACE", "DEFAULT_MCP_USER_ID", "DATA_DIR", "REDIS_URL", *_MODELS, *_PROCESS)
def mcp(
    given: dict[str, str],
    mode: Annotated[Literal["stdio", "sse", "streamable-http"], typer.Option("--mode", help="how clients speak to it")] = "stdio",
    task_backend: Annotated[
        Literal["asyncio", "docket"],
        typer.Option("--task-backend", help="asyncio: background work is done in this process; docket: by workers of their own"),
    ] = "asyncio",
) -> None:
    """Run the MCP server: memory as tools for a model. `serve` and `api` offer MCP as well, at /mcp."""
    garbage_collection.starting()
    from agent_memory.interfaces.cli import run

    run.mcp(given, mode, with_worker=task_backend == "asyncio")


@app.command()
@_with_settings("DATA_DIR", "LOG_LEVEL", "LOG_FORMAT")
def redis(
    given: dict[str, str],
    port: Annotated[str | None, _option("--port", "PORT", "port to listen on (a free one)", "EMBEDDED_REDIS_PORT")] = None,
) -> None:
    """Run only the embedded Redis and print its URL, which holds its password. Listens on 127.0.0.1."""
    from agent_memory.interfaces.cli import run

    run.redis(given | ({"EMBEDDED_REDIS_PORT": port} if port else {}))


@app.command()
@_with_settings("HOST", "PORT", "DATA_DIR", "REDIS_URL")
def doctor(
    given: dict[str, str],
    everything: Annotated[bool, typer.Option("--all", help="all settings and engines, not only those that were set or work")] = False,
) -> None:
    """Say what was found and which settings were set; exit code 1 if something would stop `serve`."""
    from agent_memory.interfaces.cli.commands import doctor as examination

    problems = examination.doctor(given, everything=everything)
    raise typer.Exit(1 if problems else 0)


@app.command()
def health(url: ServerUrl = None) -> None:
    """Ask a running API whether it lives; exit code 0 if it does. For health checks of containers."""
    from agent_memory.interfaces.cli.commands.health import check_health

    check_health(url)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


admin.register(app)
token_commands.register(app)


def main() -> None:
    """The entry point of `agent-memory`."""
    run_app(app)


def run_app(app: typer.Typer) -> None:
    """Run commands: an error of ours is one line on stderr and exit code 1, or 3 when something is not there."""
    try:
        app()
    except AgentMemoryError as error:
        line = " ".join(error.message.split())
        print(f"agent-memory: {line}", file=sys.stderr)
        raise SystemExit(_NOT_THERE if isinstance(error, NotFound) else 1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
