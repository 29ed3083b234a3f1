"""Define the command line and the commands that run a server.

This module avoids slow imports, so that `agent-memory --help` is fast.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from io import StringIO
from itertools import chain
from pathlib import Path
from signal import SIGINT
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from agent_memory import __version__
from agent_memory.foundation.core import garbage_collection
from agent_memory.foundation.core.errors import AgentMemoryError, NotFound
from agent_memory.interfaces.cli.commands.memories import call, delete, erase, forget, prompt, schedule_task, search, show, top
from agent_memory.interfaces.cli.commands.operate import accept_store, backup, health, migrate, rebuild
from agent_memory.interfaces.cli.commands.tokens import app as tokens
from agent_memory.interfaces.cli.commands.transfer import export_owner, import_file, migrate_prompt
from agent_memory.interfaces.cli.decorators import Answer, asks, extend, parameters, prints
from agent_memory.interfaces.cli.output import FAILED, NOT_FOUND, Command, report, say


class _GroupedCommands(TyperGroup):
    """A command group that lists its commands under headings in the help."""

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        for title, names in _GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(limit=1000)) for name in names])


app = typer.Typer(
    name="agent-memory",
    cls=_GroupedCommands,
    help="The self-hosted memory server for AI agents. Every setting is also an environment variable (see each command's --help).",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _option(variable: str, names: str, text: str) -> Any:
    """Return an option that sets an environment variable."""
    *flags, metavar = names.split()
    return typer.Option(*flags, metavar=metavar, help=f"{text} [env: {variable}]", show_default=False)


# Options by environment variable. Without the option, the environment, `.env` or the default applies.
_TEXTS = {
    "HOST": ("--host HOST", "address to listen on (default: 127.0.0.1)"),
    "PORT": ("--port PORT", "port to listen on (default: 8000)"),
    "MCP_HOST": ("--host HOST", "address to listen on (default: 127.0.0.1)"),
    "MCP_PORT": ("--port PORT", "port to listen on (default: 9000)"),
    "DEFAULT_MCP_NAMESPACE": ("--namespace NAME", "default namespace for calls"),
    "DEFAULT_MCP_USER_ID": ("--user --user-id NAME", "default user for calls"),
    "DATA_DIR": ("--data-dir DIR", "data directory of the embedded Redis (default: agent-memory-data)"),
    "REDIS_URL": ("--redis-url URL", "URL of a Redis with the query engine, to replace the embedded one"),
    "EMBEDDED_REDIS_PORT": ("--embedded-redis-port PORT", "port of the embedded Redis (default: a free one)"),
    "KEY_PREFIX": ("--key-prefix WORD", "prefix of all Redis keys (default: am)"),
    "MODEL_PROVIDER": ("--model-provider NAME", "model provider: auto, openai or local (default: auto)"),
    "OPENAI_BASE_URL": ("--openai-base-url URL", "URL of an OpenAI-compatible server"),
    "GENERATION_MODEL": ("--generation-model MODEL", "model for summaries and facts"),
    "EMBEDDING_MODEL": ("--embedding-model MODEL", "model for embeddings"),
    "WORKER_CONCURRENCY": ("--concurrency N", "tasks that a worker runs concurrently (default: 40)"),
    "WORKER_REDELIVERY_TIMEOUT_SECONDS": ("--redelivery-timeout SECONDS", "seconds before another worker retries a dead worker's task"),
    "SHUTDOWN_GRACE_SECONDS": ("--grace SECONDS", "seconds to finish running work at shutdown (default: 20)"),
    "LOG_LEVEL": ("--log-level LEVEL", "lowest level to log: DEBUG, INFO, WARNING, ERROR (default: INFO)"),
    "LOG_FORMAT": ("--log-format FORMAT", "format of log lines: console or json (default: console)"),
}
_SETTINGS: dict[str, Any] = {variable: Annotated[str | None, _option(variable, *texts)] for variable, texts in _TEXTS.items()}
_SETTINGS["ACCESS_LOG"] = Annotated[
    bool | None, typer.Option("--access-log/--no-access-log", help="log each request (default: yes) [env: ACCESS_LOG]")
]
_MODELS = ("KEY_PREFIX", "MODEL_PROVIDER", "OPENAI_BASE_URL", "GENERATION_MODEL", "EMBEDDING_MODEL")
_Backend = Literal["docket", "asyncio"]
_BACKENDS = "docket: workers run in other processes; asyncio: this process runs a worker"
_PROCESS = ("SHUTDOWN_GRACE_SECONDS", "LOG_LEVEL", "LOG_FORMAT")


def _with_settings(*variables: str) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Return a decorator that adds settings as options and passes them to the command as a dict."""

    def decorate(command: Callable[..., Any]) -> Callable[..., None]:
        def call(settings: dict[str, Any], own: dict[str, Any]) -> Any:
            return command({name: str(value) for name, value in settings.items() if value not in (None, "")}, **own)

        return extend(command, parameters(**{name: _SETTINGS[name] for name in variables}), call)

    return decorate


def _run() -> Any:
    """Import the server with garbage collection turned off."""
    garbage_collection.starting()
    from agent_memory.interfaces.cli import run

    return run


@_with_settings("HOST", "PORT", "DATA_DIR", "REDIS_URL", "EMBEDDED_REDIS_PORT", *_MODELS, "WORKER_CONCURRENCY", *_PROCESS, "ACCESS_LOG")
def serve(given: dict[str, str]) -> None:
    """Run everything in one process: the API, a worker, and Redis unless REDIS_URL is set."""
    _run().serve(given, "api", with_worker=True)


@_with_settings("HOST", "PORT", "REDIS_URL", *_MODELS, *_PROCESS, "ACCESS_LOG")
def api(
    given: dict[str, str],
    task_backend: Annotated[_Backend, typer.Option(help=_BACKENDS)] = "docket",
    no_worker: Annotated[bool, typer.Option("--no-worker", hidden=True, help="same as --task-backend docket, the default")] = False,
) -> None:
    """Run only the API, using the Redis at REDIS_URL. Multiple API processes can share it."""
    _run().serve(given, "api", with_worker=task_backend == "asyncio" and not no_worker, shares_redis="api")


@_with_settings("REDIS_URL", *_MODELS, "WORKER_CONCURRENCY", "WORKER_REDELIVERY_TIMEOUT_SECONDS", *_PROCESS)
def worker(given: dict[str, str]) -> None:
    """Run only a worker, using the Redis at REDIS_URL. Multiple workers share the work."""
    _run().serve(given, None, with_worker=True, shares_redis="worker")


@_with_settings("MCP_HOST", "MCP_PORT", "DEFAULT_MCP_NAMESPACE", "DEFAULT_MCP_USER_ID", "DATA_DIR", "REDIS_URL", *_MODELS, *_PROCESS)
def mcp(
    given: dict[str, str],
    mode: Annotated[Literal["stdio", "sse", "streamable-http"], typer.Option(help="transport for clients")] = "stdio",
    task_backend: Annotated[_Backend, typer.Option(help=_BACKENDS)] = "asyncio",
) -> None:
    """Run the MCP server, which gives models memory tools.

    `serve` and `api` also provide MCP, at /mcp.
    """
    with_worker = task_backend == "asyncio"
    _run().serve(given, mode, with_worker=with_worker, shares_redis=None if with_worker else "mcp --task-backend docket")


@_with_settings("DATA_DIR", "LOG_LEVEL", "LOG_FORMAT")
def redis(
    given: dict[str, str],
    port: Annotated[str | None, _option("EMBEDDED_REDIS_PORT", "--port PORT", "port to listen on (default: a free one)")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the URL as JSON")] = False,
) -> None:
    """Run only the embedded Redis on 127.0.0.1, and print its URL, including the password."""
    from agent_memory.interfaces.cli import run

    run.redis(given | ({"EMBEDDED_REDIS_PORT": port} if port else {}), as_json=as_json)


@prints
@_with_settings("HOST", "PORT", "DATA_DIR", "REDIS_URL")
def doctor(
    given: dict[str, str],
    everything: Annotated[bool, typer.Option("--all", help="also show unset settings and unavailable engines")] = False,
) -> Answer:
    """Check whether `serve` would start, and print the settings. Exit with code 1 if not."""
    from agent_memory.interfaces.cli.commands.doctor import examine

    return examine(given, everything=everything)


@prints
def version() -> Answer:
    """Print the version."""
    return Answer({"version": __version__}, __version__)


def _commands_of_features() -> dict[str, Any]:
    """Return each feature's command, defined in `command.py` and named after its folder."""
    paths = [file.parts[-3:-1] for file in sorted(Path(__file__).parents[2].glob("*/*/command.py"))]
    return {name: asks(getattr(import_module(f"agent_memory.{level}.{name}.command"), name)) for level, name in paths}


_GROUPS: dict[str, dict[str, Any]] = {
    "Run": {"serve": serve, "api": api, "worker": worker, "mcp": mcp, "redis": redis},
    "Look": {"search": search, "prompt": prompt, "show": show, "doctor": doctor, "top": top, "health": health, "version": version},
    "Change": {"forget": forget, "export": export_owner, "import": import_file, "erase": erase, "delete": delete, "token": tokens},
    "Operate": {
        "migrate": migrate,
        "migrate-prompt": migrate_prompt,
        "backup": backup,
        "rebuild": rebuild,
        **_commands_of_features(),
        "accept-store": accept_store,
    },
    "Everything else": {"call": call},
    "Names of the archived server": {
        "migrate-memories": migrate,
        "migrate-working-memory": migrate,
        "rebuild-index": rebuild,
        "schedule-task": schedule_task,
        "task-worker": worker,
    },
}
for _point in entry_points(group="agent_memory.commands"):
    if any(_point.name in group for group in _GROUPS.values()):
        raise ValueError(f"two commands are named {_point.name}: rename one, or uninstall its package")
    _GROUPS["Everything else"][_point.name] = asks(_point.load())
_ALIASES = ("migrate-memories", "migrate-working-memory", "rebuild-index", "task-worker")
for _name, _command in chain.from_iterable(group.items() for group in _GROUPS.values()):
    if isinstance(_command, typer.Typer):
        app.add_typer(_command, name=_name)
    else:
        _summary = f"The archived server's name for `{_command.__name__}`." if _name in _ALIASES else None
        app.command(name=_name, cls=Command, short_help=_summary)(_command)


def main() -> None:
    run_app(app)


def run_app(app: typer.Typer) -> None:
    """Run a command. The exit code is 2 (usage error), 3 (not found), or 1 (other errors)."""
    try:
        code = app(standalone_mode=False)
    except AgentMemoryError as error:
        report(error.advice)
        code = NOT_FOUND if isinstance(error, NotFound) else FAILED
    except typer.TyperException as error:
        code = _report_usage(error)
    except (typer.Abort, KeyboardInterrupt):
        code = 128 + SIGINT
    raise SystemExit(code)


def _report_usage(error: Any) -> int:
    """Report a usage error, with suggestions for unknown options."""
    from agent_memory_client._wire.problems import plain_words

    option = getattr(error, "option_name", "")
    error.possibilities = get_close_matches(option, getattr(error, "possibilities", None) or (), cutoff=0.75)
    if option and any(parameter.metavar == option.lstrip("-").upper() for parameter in error.ctx.command.params):
        error.message += f". Write the {option.lstrip('-')} without {option}"
    error.message = plain_words(error.message)
    error.show(lines := StringIO())
    say(*lines.getvalue().splitlines(), err=True)
    return error.exit_code


if __name__ == "__main__":
    main()
