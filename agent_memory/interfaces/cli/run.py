"""Run servers, workers and Redis."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Literal

from agent_memory.features.access.exposure import check_exposure, warn_of_exposure
from agent_memory.features.jobs.load_sampler import sampling
from agent_memory.features.jobs.load_store import LoadStore
from agent_memory.foundation.core import garbage_collection
from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.logs import configure_logging, get_logger
from agent_memory.foundation.core.settings import Settings, load_settings
from agent_memory.foundation.core.settings.renamed import unread_variables
from agent_memory.foundation.embedded.server import embedded_redis
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.store_marker import StoreFile
from agent_memory.foundation.storage.store_watch import watching
from agent_memory.foundation.text.languages.preparation import compile_phrases
from agent_memory.interfaces.http.app import create_app, create_mcp_app
from agent_memory.interfaces.http.serving.signals import Shutdown, run_until_stopped
from agent_memory.interfaces.http.serving.sockets import listening, shown_address
from agent_memory.interfaces.http.serving.uvicorn_server import HttpServer
from agent_memory.runtime import Runtime, open_runtime

if TYPE_CHECKING:
    from agent_memory.interfaces.mcp.stdio import StdioServer

log = get_logger(__name__)

# A part that exceeds its own time limit for stopping is cancelled after this many more seconds.
_MARGIN_SECONDS = 5.0


Face = Literal["api", "stdio", "sse", "streamable-http"]
"""The API, or MCP with one of its transports."""


def serve(overrides: dict[str, str], face: Face | None, *, with_worker: bool, shares_redis: str | None = None) -> None:
    """Run a server, a worker or both until shutdown. With stdio, also stop when stdin closes.

    `shares_redis` is the name of a command that requires REDIS_URL.
    """
    settings = _settings(overrides, shares_redis)
    if face is None:
        # Give priority to processes that answer requests. This adds to the process's initial niceness.
        os.nice(settings.worker.niceness)
    run_until_stopped(lambda shutdown: _run(settings, shutdown, face, with_worker=with_worker))


def redis(overrides: dict[str, str], *, as_json: bool = False) -> None:
    """Run only the embedded Redis, in the foreground."""
    settings = _settings(overrides)

    async def run(shutdown: Shutdown) -> None:
        options = settings.redis
        buckets = [Keys(options.key_prefix, number) for number in range(options.buckets)]
        async with (
            embedded_redis(options.data_dir, port=options.embedded_port) as running,
            watching(running.url, buckets, StoreFile(running.data_dir), command_timeout=options.command_timeout_seconds),
        ):
            shutdown.started()
            text = f"Redis: {running.description}\nREDIS_URL={running.url}"
            print(json.dumps({"description": running.description, "url": running.url}) if as_json else text, flush=True)
            await shutdown.requested.wait()

    run_until_stopped(run)


def _settings(overrides: dict[str, str], shares_redis: str | None = None) -> Settings:
    """Return the settings. Raises StartupError if `shares_redis` is set but REDIS_URL is not."""
    settings = load_settings(**overrides)
    configure_logging(settings.server, access_log=settings.server.access_log)
    for variable in unread_variables(Path(".env")):
        if not variable.common:
            log.warning("setting is never read", setting=variable.name, hint=variable.advice)
    if shares_redis is not None and settings.redis.url is None:
        raise StartupError(
            f"`agent-memory {shares_redis}` needs REDIS_URL (or --redis-url), a Redis that it shares with the other processes; "
            "`agent-memory serve` runs everything with a Redis of its own"
        )
    return settings


async def _run(settings: Settings, shutdown: Shutdown, face: Face | None, *, with_worker: bool) -> None:
    """Run the server and the worker until they stop."""
    place = settings.server if face == "api" else settings.mcp
    async with AsyncExitStack() as stack:
        listeners: list[socket] = []
        if face not in (None, "stdio"):
            listeners = stack.enter_context(listening(place.host, place.port))
            check_exposure(settings, place.host)
        runtime, engines = await stack.enter_async_context(_open_store_and_runtime(settings))
        server: HttpServer | StdioServer | None = None
        lines = [f"agent-memory worker, {settings.worker.concurrency} tasks at one time", *engines]
        if face == "stdio":
            from agent_memory.interfaces.mcp.stdio import StdioServer

            # Only the protocol may write to stdout.
            print("agent-memory speaks MCP over stdio", *engines, sep="\n", file=sys.stderr, flush=True)
            server, lines = StdioServer(settings, runtime), []
        elif face is not None:
            app = create_app(settings, runtime) if face == "api" else create_mcp_app(settings, runtime, face)
            server = HttpServer(listeners, app, settings, app.state.live.end if face == "api" else app.state.mcp.stop)
            warn_of_exposure(settings, place.host)
            url = f"http://{shown_address(listeners, '127.0.0.1' if place.host in ('0.0.0.0', '::', '') else place.host)}"
            path = {"api": "", "sse": "/sse"}.get(face, "/mcp")
            hint = "" if with_worker else "   (without a worker: run `agent-memory worker` as well)"
            lines = [f"agent-memory listens on {url}{path}{hint}", *engines, *(_api_lines(settings, url) if face == "api" else [])]
        await _run_parts(settings, runtime, shutdown, server, lines, face, with_worker=with_worker)


def _api_lines(settings: Settings, url: str) -> list[str]:
    """Return lines on how to get started, how to stop, and which data leaves this machine."""
    models = settings.models
    if models.use_openai_chat or models.use_openai_embeddings or models.rerank_base_url is not None:
        leaves = "texts go to the model server"
    else:
        leaves = "nothing leaves this machine" if settings.redis.url is None else "no model server is asked"
    example_body = '{"messages": [{"role": "user", "content": "My sister Ana lives in Lisbon."}]}'
    return [
        *([f"Console:   {url}/console"] if settings.server.console else []),
        f"API:       {url}/docs",
        f"Try:       curl '{url}/v1/working-memory/hello/messages?wait=searchable' -H 'content-type: application/json' -d '{example_body}'",
        f"Stop:      Ctrl-C stops; the data stay; {leaves}",
    ]


@asynccontextmanager
async def _open_store_and_runtime(settings: Settings) -> AsyncGenerator[tuple[Runtime, list[str]]]:
    """Yield a runtime on the configured or embedded Redis, and lines that describe its engines."""
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
        await stack.enter_async_context(sampling(runtime.all, runtime[LoadStore]))
        yield runtime, [f"Redis:     {redis_description or runtime.redis_description}", f"Models:    {runtime.models_description}"]


async def _run_parts(
    settings: Settings,
    runtime: Runtime,
    shutdown: Shutdown,
    server: HttpServer | StdioServer | None,
    lines: Sequence[str],
    face: Face | None,
    *,
    with_worker: bool,
) -> None:
    """Run the server and the worker until a signal arrives or one of them ends.

    Print `lines` once the server is ready. Raises StartupError if a task ends on its own, except
    for the stdio server.
    """
    name = "api" if face == "api" else "mcp"
    if with_worker:
        # docket and its libraries take a third of a second to import. An API without a worker does not wait for them.
        from agent_memory_worker.main import run_worker
    else:
        run_worker = None
    grace = settings.server.shutdown_grace_seconds + _MARGIN_SECONDS
    stop_worker = asyncio.Event()
    parts: dict[str, asyncio.Task[None]] = {}
    stop_request = asyncio.create_task(shutdown.requested.wait())
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
        await asyncio.wait({stop_request, *parts.values()}, return_when=asyncio.FIRST_COMPLETED)
        if shutdown.requested.is_set() and not shutdown.at_once and server is not None and server.drain():
            log.info("stopping: still accepting requests, but readiness returns 503", seconds=settings.server.shutdown_drain_seconds)
            await asyncio.wait(parts.values(), timeout=settings.server.shutdown_drain_seconds, return_when=asyncio.FIRST_COMPLETED)
        broken = [each for each, part in parts.items() if part.done() and not (face == "stdio" and each == name and not part.exception())]
        if not broken:
            log.info("stopping: finishing open requests, then running tasks", seconds=grace)
    finally:
        stop_request.cancel()
        if server is not None:
            server.stop()
            await _end(parts.get(name), grace)
        stop_worker.set()
        await _end(parts.get("worker"), grace)
    for each in broken:
        if not parts[each].cancelled() and (error := parts[each].exception()):
            log.error("part of the process failed", part=each, exc_info=error)
        raise StartupError(f"the {each} ended unexpectedly; the process stops with it (see the log)")


async def _end(part: asyncio.Task[None] | None, seconds: float) -> None:
    """Wait for a part that is already stopping. Cancel it after `seconds`."""
    if part is None:
        return
    _, unfinished = await asyncio.wait({part}, timeout=seconds)
    if unfinished:
        part.cancel()
        await asyncio.wait({part}, timeout=_MARGIN_SECONDS)
