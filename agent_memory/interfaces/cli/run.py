"""The commands that run: serve, api, worker, mcp and redis. Each is a composition root; parts start in order and end in reverse."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

import uvicorn

from agent_memory.features.access.exposure import check_exposure, warn_of_exposure
from agent_memory.foundation.core import garbage_collection
from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.logs import configure_logging
from agent_memory.foundation.core.settings import Settings, load_settings
from agent_memory.foundation.core.settings.renamed import unread_variables
from agent_memory.foundation.embedded.server import embedded_redis
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.store_marker import StoreFile
from agent_memory.foundation.storage.store_watch import watching
from agent_memory.foundation.text.languages.preparation import compile_phrases
from agent_memory.interfaces.cli.signals import Shutdown, run_until_stopped
from agent_memory.interfaces.cli.sockets import listening, shown_address
from agent_memory.interfaces.http.app import create_app, create_mcp_app
from agent_memory.interfaces.http.draining import Draining, turn_away
from agent_memory.interfaces.http.protocol import KEEP_ALIVE_SECONDS, http_protocol
from agent_memory.runtime import Runtime, open_runtime

log = logging.getLogger(__name__)

# How much longer than its own bound a part may take to end before it is cut off.
_MARGIN_SECONDS = 5.0
# libuv takes one new connection per socket in each turn of the loop, and under load a turn takes milliseconds: callers would wait in the
# kernel's queue, where nobody refuses them, and when that is full for seconds. So each socket is looked at under this many names.
_ACCEPTS_PER_TURN = 32
_EVERY_ADDRESS = {"0.0.0.0", "::", ""}


def serve(overrides: dict[str, str]) -> None:
    """API, worker and, without REDIS_URL, the embedded Redis; returns when they were stopped in order."""
    settings = _settings(overrides)
    run_until_stopped(lambda shutdown: _run(settings, shutdown, with_api=True, with_worker=True))


def api(overrides: dict[str, str], *, with_worker: bool = False) -> None:
    """Only the API, or with a worker in the same process."""
    settings = _settings(overrides)
    _require_redis(settings, "api")
    run_until_stopped(lambda shutdown: _run(settings, shutdown, with_api=True, with_worker=with_worker))


def worker(overrides: dict[str, str]) -> None:
    """Only a worker."""
    settings = _settings(overrides)
    _require_redis(settings, "worker")
    # Who waits for an answer goes first. Priorities only ever sink: one that was given to us from outside counts as well.
    os.nice(settings.worker.niceness)
    run_until_stopped(lambda shutdown: _run(settings, shutdown, with_api=False, with_worker=True))


def mcp(overrides: dict[str, str], mode: Literal["stdio", "sse", "streamable-http"], *, with_worker: bool) -> None:
    """Only MCP, with a worker in the same process or beside it; over stdio until the client closes our stdin."""
    settings = _settings(overrides)
    if not with_worker:
        _require_redis(settings, "mcp --task-backend docket")
    run_until_stopped(lambda shutdown: _run_mcp(settings, shutdown, mode, with_worker=with_worker))


def redis(overrides: dict[str, str]) -> None:
    """Only the embedded Redis, in the foreground."""
    settings = _settings(overrides)

    async def run(shutdown: Shutdown) -> None:
        options = settings.redis
        buckets = [Keys(options.key_prefix, number) for number in range(options.buckets)]
        async with (
            embedded_redis(options.data_dir, port=options.embedded_port) as running,
            watching(running.url, buckets, StoreFile(running.data_dir), command_timeout=options.command_timeout_seconds),
        ):
            shutdown.started()
            print(f"Redis: {running.description}\nREDIS_URL={running.url}", flush=True)
            await shutdown.requested.wait()

    run_until_stopped(run)


def _settings(overrides: dict[str, str]) -> Settings:
    settings = load_settings(**overrides)
    configure_logging(settings.server, access_log=settings.server.access_log)
    for variable in unread_variables(Path(".env")):
        if not variable.common:
            log.warning(variable.advice, extra={"setting": variable.name})
    check_redis_url(settings)
    return settings


def check_redis_url(settings: Settings) -> None:
    """Raises StartupError when REDIS_URL is not the URL of a Redis."""
    if settings.redis.url is None:
        return
    try:
        parts = urlsplit(settings.redis.url.get_secret_value())
        usable = (parts.scheme in ("redis", "rediss") and parts.hostname and parts.port != 0) or (parts.scheme == "unix" and parts.path)
    except ValueError:
        usable = False
    if not usable:
        raise StartupError("setting REDIS_URL: must look like redis://[user:password@]host:6379/0 (or rediss://, unix://)")


def _require_redis(settings: Settings, command: str) -> None:
    if settings.redis.url is None:
        raise StartupError(
            f"`agent-memory {command}` needs REDIS_URL (or --redis-url), a Redis that it shares with the other processes; "
            "`agent-memory serve` runs everything with a Redis of its own"
        )


async def _run(settings: Settings, shutdown: Shutdown, *, with_api: bool, with_worker: bool) -> None:
    """Opens what is asked for in order (port, Redis, runtime, parts), waits for the end, closes in reverse."""
    async with AsyncExitStack() as stack:
        server = stack.enter_context(_bind(settings.server.host, settings.server.port)) if with_api else None
        if server is not None:
            check_exposure(settings, settings.server.host)
        runtime, redis_description = await stack.enter_async_context(_open_store_and_runtime(settings))
        if server is not None:
            server.mount(create_app(settings, runtime), settings)
            lines = [*_api_lines(f"http://{server.address}", with_worker=with_worker), _end_line(settings)]
            warn_of_exposure(settings, settings.server.host)
        else:
            lines = [f"agent-memory worker, {settings.worker.concurrency} tasks at one time"]
        lines[1:1] = _engines(runtime, redis_description)
        await _run_parts(settings, runtime, shutdown, server, lines, with_worker=with_worker)


async def _run_mcp(settings: Settings, shutdown: Shutdown, mode: Literal["stdio", "sse", "streamable-http"], *, with_worker: bool) -> None:
    """As `_run`, for MCP."""
    async with AsyncExitStack() as stack:
        server = None if mode == "stdio" else stack.enter_context(_bind(settings.mcp.host, settings.mcp.port))
        if server is not None:
            check_exposure(settings, settings.mcp.host)
        runtime, redis_description = await stack.enter_async_context(_open_store_and_runtime(settings))
        engines = _engines(runtime, redis_description)
        if mode == "stdio" or server is None:
            from agent_memory.interfaces.mcp.stdio import StdioServer

            # stdout is the protocol's.
            print("agent-memory speaks MCP over stdio", *engines, sep="\n", file=sys.stderr, flush=True)
            await _run_parts(
                settings, runtime, shutdown, StdioServer(settings, runtime), [], with_worker=with_worker, name="mcp", may_end=True
            )
            return
        warn_of_exposure(settings, settings.mcp.host)
        app = create_mcp_app(settings, runtime, mode)
        server.mount(app, settings, on_stop=app.state.mcp.stop)
        url = f"http://{server.address}/{'sse' if mode == 'sse' else 'mcp'}"
        lines = [f"agent-memory listens on {url}" + _worker_hint(with_worker), *engines]
        await _run_parts(settings, runtime, shutdown, server, lines, with_worker=with_worker, name="mcp")


@asynccontextmanager
async def _open_store_and_runtime(settings: Settings) -> AsyncGenerator[tuple[Runtime, str]]:
    """The runtime over REDIS_URL or a Redis of our own, and what Redis it is."""
    async with AsyncExitStack() as stack:
        compiling = asyncio.create_task(asyncio.to_thread(compile_phrases))
        stack.push_async_callback(asyncio.wait, {compiling})
        redis_description: str | None = None
        data_dir: Path | None = None
        if settings.redis.url is None:
            engine = await stack.enter_async_context(embedded_redis(settings.redis.data_dir, port=settings.redis.embedded_port))
            url, redis_description, data_dir = engine.url, engine.description, engine.data_dir
        else:
            url = settings.redis.url.get_secret_value()
        runtime = await stack.enter_async_context(open_runtime(settings, url, data_dir=data_dir))
        yield runtime, redis_description or runtime.redis_description


# ----------------------------------------------------------------------------------------------------------------------- HTTP


class _Uvicorn(uvicorn.Server):
    """A uvicorn that leaves the signals to us and says when it answers requests."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answers = asyncio.Event()
        self.listeners: list[socket.socket] = []
        """Names of the listening sockets that stay open until all connections in their queues have an answer."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.answers.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(turn_away(self.listeners))
            await super().shutdown(sockets=sockets)


class _HttpServer:
    """The sockets that were taken at the start, and the uvicorn that gets them."""

    def __init__(self, listeners: list[socket.socket], address: str) -> None:
        self._listeners = listeners
        self.address = address
        self._uvicorn: _Uvicorn | None = None
        self._draining: Draining | None = None
        self._on_stop: Callable[[], None] = lambda: None

    def mount(self, app: Callable[..., Any], settings: Settings, *, on_stop: Callable[[], None] | None = None) -> None:
        """Sets the application that `run` serves, and what ends its requests that have no end of their own."""
        self._on_stop = on_stop or self._on_stop
        self._draining = Draining(app)
        config = uvicorn.Config(
            self._draining,
            loop="none",
            http=http_protocol(settings),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,  # it would tell queries; our own line is written by the outermost middleware
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=settings.server.shutdown_grace_seconds,
        )
        self._uvicorn = _Uvicorn(config)

    async def run(self) -> None:
        """Serves until `stop`."""
        assert self._uvicorn is not None
        # uvicorn closes them when it is told to stop; the address ends with the last name of each.
        self._uvicorn.listeners = [listener.dup() for listener in self._listeners]
        names = [name for listener in self._listeners for name in (listener, *(listener.dup() for _ in range(_ACCEPTS_PER_TURN - 1)))]
        await self._uvicorn.serve(sockets=names)

    async def started(self) -> None:
        """Returns once requests are answered."""
        assert self._uvicorn is not None
        await self._uvicorn.answers.wait()

    def drain(self) -> bool:
        """From now on each answer is the last on its connection, and readiness says that we stop; what comes is answered all the same."""
        if self._draining is not None:
            self._draining.begin()
        return True

    def stop(self) -> None:
        """Stops accepting; `run` returns when the requests that run have been answered, or after the grace time."""
        self.drain()
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True
            self._on_stop()


@contextmanager
def _bind(host: str, port: int) -> Generator[_HttpServer, None, None]:
    with listening(host, port) as listeners:
        shown = "127.0.0.1" if host in _EVERY_ADDRESS else host
        yield _HttpServer(listeners, shown_address(listeners, shown))


# ---------------------------------------------------------------------------------------------------------------------- parts


class _HttpApp(Protocol):
    """What answers requests."""

    async def run(self) -> None: ...

    async def started(self) -> None: ...

    def drain(self) -> bool: ...

    def stop(self) -> None: ...


async def _run_parts(
    settings: Settings,
    runtime: Runtime,
    shutdown: Shutdown,
    server: _HttpApp | None,
    lines: Sequence[str],
    *,
    with_worker: bool,
    name: str = "api",
    may_end: bool = False,
) -> None:
    """Runs the face and the worker as tasks until a signal, or until one of them ends by itself, which ends the process.

    `lines` are printed when requests are answered. A face that `may_end` has one client, and no more to do without it.
    """
    if with_worker:
        # docket and what it needs take a third of a second to import: an API by itself does not wait for them.
        from agent_memory_worker.main import run_worker
    else:
        run_worker = None
    grace = settings.server.shutdown_grace_seconds + _MARGIN_SECONDS
    stop_worker = asyncio.Event()
    parts: dict[str, asyncio.Task[None]] = {}
    asked = asyncio.create_task(shutdown.requested.wait())
    garbage_collection.settle()
    try:
        if run_worker is not None:
            parts["worker"] = asyncio.create_task(run_worker(runtime, settings, stop_worker))
        if server is not None:
            parts[name] = asyncio.create_task(server.run())
            ready = asyncio.create_task(server.started())
            await asyncio.wait({ready, *parts.values()}, return_when=asyncio.FIRST_COMPLETED)
            ready.cancel()
        shutdown.started()
        if not any(part.done() for part in parts.values()):
            print(*lines, sep="\n", end="\n" if lines else "", flush=True)
        await asyncio.wait({asked, *parts.values()}, return_when=asyncio.FIRST_COMPLETED)
        if shutdown.requested.is_set() and not shutdown.at_once and server is not None and server.drain():
            log.info("stopping: answering what comes for %g s, while readiness says 503", settings.server.shutdown_drain_seconds)
            await asyncio.wait(parts.values(), timeout=settings.server.shutdown_drain_seconds, return_when=asyncio.FIRST_COMPLETED)
        broken = [each for each, part in parts.items() if part.done() and not (may_end and each == name and part.exception() is None)]
        if not broken:
            log.info("stopping: answering what was asked, then ending the tasks that run")
    finally:
        asked.cancel()
        if server is not None:
            server.stop()
            await _end(parts.get(name), grace)
        stop_worker.set()
        await _end(parts.get("worker"), grace)
    for each in broken:
        if not parts[each].cancelled() and (error := parts[each].exception()):
            log.error("the %s failed", each, exc_info=error)
        raise StartupError(f"the {each} ended unexpectedly; the process stops with it (see the log)")


async def _end(part: asyncio.Task[None] | None, seconds: float) -> None:
    """Waits for a part that was asked to end; cuts it off after `seconds`."""
    if part is None:
        return
    _, unfinished = await asyncio.wait({part}, timeout=seconds)
    if unfinished:
        part.cancel()
        await asyncio.wait({part}, timeout=_MARGIN_SECONDS)


def _engines(runtime: Runtime, redis_description: str) -> list[str]:
    return [f"Redis:     {redis_description}", f"Models:    {runtime.models_description}"]


def _end_line(settings: Settings) -> str:
    """How to stop, and what leaves this machine."""
    models = settings.models
    servers = (models.use_openai_chat, models.use_openai_embeddings, models.rerank_base_url is not None)
    if any(servers):
        leaves = "texts go to the model server"
    else:
        leaves = "nothing leaves this machine" if settings.redis.url is None else "no model server is asked"
    return f"Stop:      Ctrl-C stops; the data stay; {leaves}"


def _worker_hint(with_worker: bool) -> str:
    return "" if with_worker else "   (without a worker: run `agent-memory worker` as well)"


def _api_lines(url: str, *, with_worker: bool) -> list[str]:
    """What is said on stdout when the API answers."""
    said = '{"messages": [{"role": "user", "content": "My sister Ana lives in Lisbon."}]}'
    return [
        f"agent-memory listens on {url}" + _worker_hint(with_worker),
        f"API:       {url}/docs",
        f"Try:       curl '{url}/v1/working-memory/hello/messages?wait=searchable' -H 'content-type: application/json' -d '{said}'",
    ]
