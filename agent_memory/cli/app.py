"""The command line: `agent-memory serve | api | worker | mcp | redis | doctor | health | jobs | eval | version`.

Nothing heavy is imported at the top of this file: `agent-memory --help` must not wait for the server's libraries.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from agent_memory import __version__
from agent_memory.cli import admin, feature_commands, token_commands
from agent_memory.core import garbage_collection
from agent_memory.core.errors import AgentMemoryError, NotFound

_NOT_THERE = 3

_GROUPS = {
    "Run a server": ("serve", "api", "worker", "mcp", "redis"),
    "Memories": (),
    "Look after a server": (*("doctor", "health", "jobs", "token", "migrate", "rebuild-index", "accept-store", "version"),),
    "Names of the archived server": ("migrate-memories", "migrate-working-memory", "schedule-task", "task-worker"),
}
"""The commands by what they are for. Those that no group names, such as those of features, are about memories."""


class _GroupedCommands(TyperGroup):
    """Commands in groups, each with its whole first line."""

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """See click."""
        named = {name for names in _GROUPS.values() for name in names}
        rest = [name for name in self.list_commands(ctx) if name not in named]
        for title, names in _GROUPS.items():
            commands = [(name, self.commands[name]) for name in names or rest if name in self.commands]
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
Host = Annotated[str | None, _option("--host", "HOST", "address to listen on (127.0.0.1)", "HOST")]
Port = Annotated[str | None, _option("--port", "PORT", "port to listen on (8000)", "PORT")]
DataDir = Annotated[str | None, _option("--data-dir", "DIR", "where the embedded Redis keeps its data (agent-memory-data)", "DATA_DIR")]
RedisUrl = Annotated[str | None, _option("--redis-url", "URL", "a Redis with the query engine, instead of the embedded one", "REDIS_URL")]
RedisPort = Annotated[str | None, _option("--embedded-redis-port", "PORT", "its port (a free one)", "EMBEDDED_REDIS_PORT")]
KeyPrefix = Annotated[str | None, _option("--key-prefix", "WORD", "begin of every key in Redis (am)", "KEY_PREFIX")]
LogLevel = Annotated[str | None, _option("--log-level", "LEVEL", "DEBUG, INFO, WARNING, ERROR (INFO)", "LOG_LEVEL")]
LogFormat = Annotated[str | None, _option("--log-format", "FORMAT", "console or json (console)", "LOG_FORMAT")]
ServerUrl = Annotated[
    str | None,
    typer.Option("--url", envvar="AGENT_MEMORY_URL", metavar="URL", help="where the API listens (http://127.0.0.1:PORT)"),
]
Provider = Annotated[str | None, _option("--model-provider", "NAME", "auto, openai or local (auto)", "MODEL_PROVIDER")]
BaseUrl = Annotated[str | None, _option("--openai-base-url", "URL", "any OpenAI-compatible server", "OPENAI_BASE_URL")]
Generation = Annotated[str | None, _option("--generation-model", "MODEL", "writes summaries and facts", "GENERATION_MODEL")]
Embedding = Annotated[str | None, _option("--embedding-model", "MODEL", "embeds memories and queries", "EMBEDDING_MODEL")]
Concurrency = Annotated[str | None, _option("--concurrency", "N", "tasks of a worker at one time (40)", "WORKER_CONCURRENCY")]
Grace = Annotated[str | None, _option("--grace", "SECONDS", "for what runs when we are stopped (20)", "SHUTDOWN_GRACE_SECONDS")]
AccessLog = Annotated[
    bool | None, typer.Option("--access-log/--no-access-log", help="a line in the log for each request (yes) [env: ACCESS_LOG]")
]


@app.command()
def serve(
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    redis_url: RedisUrl = None,
    embedded_redis_port: RedisPort = None,
    key_prefix: KeyPrefix = None,
    model_provider: Provider = None,
    openai_base_url: BaseUrl = None,
    generation_model: Generation = None,
    embedding_model: Embedding = None,
    concurrency: Concurrency = None,
    grace: Grace = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
    access_log: AccessLog = None,
) -> None:
    """Run everything in one process: the API, a worker, and Redis unless REDIS_URL is given."""
    garbage_collection.starting()
    from agent_memory.cli import run

    run.serve(
        _given(
            HOST=host,
            PORT=port,
            DATA_DIR=data_dir,
            REDIS_URL=redis_url,
            EMBEDDED_REDIS_PORT=embedded_redis_port,
            KEY_PREFIX=key_prefix,
            MODEL_PROVIDER=model_provider,
            OPENAI_BASE_URL=openai_base_url,
            GENERATION_MODEL=generation_model,
            EMBEDDING_MODEL=embedding_model,
            WORKER_CONCURRENCY=concurrency,
            SHUTDOWN_GRACE_SECONDS=grace,
            LOG_LEVEL=log_level,
            LOG_FORMAT=log_format,
            ACCESS_LOG=None if access_log is None else str(access_log),
        ),
    )


@app.command()
def api(
    host: Host = None,
    port: Port = None,
    redis_url: RedisUrl = None,
    key_prefix: KeyPrefix = None,
    model_provider: Provider = None,
    openai_base_url: BaseUrl = None,
    generation_model: Generation = None,
    embedding_model: Embedding = None,
    grace: Grace = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
    access_log: AccessLog = None,
    task_backend: Annotated[
        Literal["docket", "asyncio"], typer.Option(help="docket: workers are other processes; asyncio: a worker runs in this one")
    ] = "docket",
    no_worker: Annotated[bool, typer.Option("--no-worker", hidden=True, help="as --task-backend docket, the default")] = False,
) -> None:
    """Run only the API, against the Redis of REDIS_URL. Any number of them share one Redis."""
    garbage_collection.starting()
    from agent_memory.cli import run

    run.api(
        _given(
            HOST=host,
            PORT=port,
            REDIS_URL=redis_url,
            KEY_PREFIX=key_prefix,
            MODEL_PROVIDER=model_provider,
            OPENAI_BASE_URL=openai_base_url,
            GENERATION_MODEL=generation_model,
            EMBEDDING_MODEL=embedding_model,
            SHUTDOWN_GRACE_SECONDS=grace,
            LOG_LEVEL=log_level,
            LOG_FORMAT=log_format,
            ACCESS_LOG=None if access_log is None else str(access_log),
        ),
        with_worker=task_backend == "asyncio" and not no_worker,
    )


@app.command()
def worker(
    redis_url: RedisUrl = None,
    key_prefix: KeyPrefix = None,
    model_provider: Provider = None,
    openai_base_url: BaseUrl = None,
    generation_model: Generation = None,
    embedding_model: Embedding = None,
    concurrency: Concurrency = None,
    grace: Grace = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
) -> None:
    """Run only a worker, against the Redis of REDIS_URL. Any number of them share the work."""
    garbage_collection.starting()
    from agent_memory.cli import run

    run.worker(
        _given(
            REDIS_URL=redis_url,
            KEY_PREFIX=key_prefix,
            MODEL_PROVIDER=model_provider,
            OPENAI_BASE_URL=openai_base_url,
            GENERATION_MODEL=generation_model,
            EMBEDDING_MODEL=embedding_model,
            WORKER_CONCURRENCY=concurrency,
            SHUTDOWN_GRACE_SECONDS=grace,
            LOG_LEVEL=log_level,
            LOG_FORMAT=log_format,
        )
    )


@app.command()
def mcp(
    mode: Annotated[Literal["stdio", "sse", "streamable-http"], typer.Option("--mode", help="how clients speak to it")] = "stdio",
    host: Annotated[str | None, _option("--host", "HOST", "address to listen on (127.0.0.1)", "MCP_HOST")] = None,
    port: Annotated[str | None, _option("--port", "PORT", "port to listen on (9000)", "MCP_PORT")] = None,
    task_backend: Annotated[
        Literal["asyncio", "docket"],
        typer.Option("--task-backend", help="asyncio: background work is done in this process; docket: by workers of their own"),
    ] = "asyncio",
    namespace: Annotated[str | None, _option("--namespace", "NAME", "of calls that name none", "DEFAULT_MCP_NAMESPACE")] = None,
    user_id: Annotated[str | None, _user_option("of calls that name none [env: DEFAULT_MCP_USER_ID]")] = None,
    data_dir: DataDir = None,
    redis_url: RedisUrl = None,
    key_prefix: KeyPrefix = None,
    model_provider: Provider = None,
    openai_base_url: BaseUrl = None,
    generation_model: Generation = None,
    embedding_model: Embedding = None,
    grace: Grace = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
) -> None:
    """Run the MCP server: memory as tools for a model. `serve` and `api` offer MCP as well, at /mcp."""
    garbage_collection.starting()
    from agent_memory.cli import run

    run.mcp(
        _given(
            MCP_HOST=host,
            MCP_PORT=port,
            DEFAULT_MCP_NAMESPACE=namespace,
            DEFAULT_MCP_USER_ID=user_id,
            DATA_DIR=data_dir,
            REDIS_URL=redis_url,
            KEY_PREFIX=key_prefix,
            MODEL_PROVIDER=model_provider,
            OPENAI_BASE_URL=openai_base_url,
            GENERATION_MODEL=generation_model,
            EMBEDDING_MODEL=embedding_model,
            SHUTDOWN_GRACE_SECONDS=grace,
            LOG_LEVEL=log_level,
            LOG_FORMAT=log_format,
        ),
        mode,
        with_worker=task_backend == "asyncio",
    )


@app.command()
def redis(
    data_dir: DataDir = None,
    port: Annotated[str | None, _option("--port", "PORT", "port to listen on (a free one)", "EMBEDDED_REDIS_PORT")] = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
) -> None:
    """Run only the embedded Redis and print its URL, which holds its password. Listens on 127.0.0.1."""
    from agent_memory.cli import run

    run.redis(_given(DATA_DIR=data_dir, EMBEDDED_REDIS_PORT=port, LOG_LEVEL=log_level, LOG_FORMAT=log_format))


@app.command()
def doctor(
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    redis_url: RedisUrl = None,
    everything: Annotated[bool, typer.Option("--all", help="all settings and engines, not only those that were set or work")] = False,
) -> None:
    """Say what was found and which settings were set; exit code 1 if something would stop `serve`."""
    from agent_memory.cli.commands import doctor as examination

    given = _given(HOST=host, PORT=port, DATA_DIR=data_dir, REDIS_URL=redis_url)
    problems = examination.doctor(given, everything=everything)
    raise typer.Exit(1 if problems else 0)


@app.command()
def health(url: ServerUrl = None) -> None:
    """Ask a running API whether it lives; exit code 0 if it does. For health checks of containers."""
    from agent_memory.cli.commands.health import check_health

    check_health(url)


@app.command()
def jobs(
    action: Annotated[Literal["list", "show", "replay", "drop"], typer.Argument(help="what to do")],
    operation: Annotated[str | None, typer.Argument(help="the operation's id, as `jobs list` shows it")] = None,
    url: ServerUrl = None,
    api_key: admin.ApiKey = None,
    state: Annotated[str | None, typer.Option("--state", metavar="STATE", help="pending, running, retrying or dead (all but dead)")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="list at most so many")] = 100,
    form: Annotated[Literal["text", "json"], typer.Option("--format", help="json: nothing else on stdout")] = "text",
) -> None:
    """Background work of a running server: list it, show, replay or drop what was given up (--state dead)."""
    from agent_memory.cli.commands import jobs as work

    work.jobs(action, operation, work.Server(url, api_key), state, limit, form)


@app.command()
def explain(
    memory_id: Annotated[str, typer.Argument(help="the memory that is missed")],
    text: Annotated[str, typer.Argument(help="the query that did not return it")],
    user_id: Annotated[str | None, _user_option("the user that the search was for")] = None,
    namespace: Annotated[str | None, typer.Option(help="the namespace that the search was in")] = None,
    mode: Annotated[Literal["semantic", "keyword", "hybrid"] | None, typer.Option(help="the mode that was asked for")] = None,
    limit: Annotated[int | None, typer.Option(min=1, max=100, help="the limit that was asked for")] = None,
    prompt: Annotated[bool, typer.Option("--prompt/--search", help="ask about a memory prompt instead of a search")] = False,
    max_tokens: Annotated[int | None, typer.Option(min=64, help="of the prompt")] = None,
    url: ServerUrl = None,
    api_key: admin.ApiKey = None,
    form: Annotated[Literal["text", "json"], typer.Option("--format", help="json: nothing else on stdout")] = "text",
) -> None:
    """Say why a search or a prompt did not return a memory. Exit code 0 if it did return it, else 1."""
    from agent_memory.cli.commands import explain as explanations
    from agent_memory.cli.commands.jobs import Server

    search: dict[str, object] = {"text": text, "search_mode": mode, "limit": limit}
    search |= {"user_id": {"eq": user_id} if user_id else None, "namespace": {"eq": namespace} if namespace else None}
    given = {name: value for name, value in search.items() if value is not None}
    raise typer.Exit(0 if explanations.explain(memory_id, given, prompt, max_tokens, Server(url, api_key), form) else 1)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


admin.register(app)
token_commands.register(app)
feature_commands.register(app)


def _given(**values: str | None) -> dict[str, str]:
    """The overrides that were given; a blank one counts as absent, as it does in the environment."""
    return {name: value for name, value in values.items() if value is not None and value != ""}


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
