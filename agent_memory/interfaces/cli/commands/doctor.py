"""Define `agent-memory doctor`."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_memory.features.access.context_limits import take_over_from
from agent_memory.features.extraction.prompts import ExtractionAnswer, extract_messages
from agent_memory.foundation.core.errors import AgentMemoryError, StartupError
from agent_memory.foundation.core.listing import table
from agent_memory.foundation.core.settings import Settings, load_settings, settings_in_force
from agent_memory.foundation.core.settings.renamed import unread_variables
from agent_memory.foundation.embedded.engine import INSTALL_HINT, examine_engines
from agent_memory.foundation.embedded.server import check_data_dir, running_redis
from agent_memory.foundation.llm.local.embedder import find_model
from agent_memory.foundation.llm.local.weights import LATIN_ONLY
from agent_memory.foundation.llm.model_context import ModelContext
from agent_memory.foundation.storage.cluster import is_begun
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.store_marker import StoreFile
from agent_memory.foundation.storage.store_watch import ACCEPT, Problem, inspect_stores
from agent_memory.interfaces.cli.decorators import Answer
from agent_memory.interfaces.http.serving.sockets import listening
from agent_memory.runtime import choose_model, open_runtime

_SOURCES = {
    "set": "set by MODEL_CONTEXT_WINDOWS",
    "told": "reported by the server",
    "learned": "learned from a refusal",
    "assumed": "assumed: the server does not report it; MODEL_CONTEXT_WINDOWS sets it",
}
# Minimum number of tokens for the messages and the answer, without the instructions. With fewer tokens, a prompt has
# room for single sentences, or for nothing.
_LEAST_ROOM = 512


def examine(overrides: dict[str, str], *, everything: bool = False) -> Answer:
    """Return findings and settings. The exit code is 1 if `serve` would not start."""
    settings = load_settings(**overrides)
    checks: dict[str, Callable[[], str]] = {"port": lambda: _port(settings), "models": lambda: _models(settings)}
    if settings.models.use_openai_chat:
        checks["context"] = lambda: asyncio.run(_context(settings))
    engines: list[str] = []
    checks["redis"] = lambda: asyncio.run(_redis(settings, engines, everything=everything))
    findings = [_finding(name, check) for name, check in checks.items()]
    problems = [finding["message"] for finding in findings if not finding["ok"]]
    rows = [(each["check"], "ok" if each["ok"] else "BAD", each["message"]) for each in findings]
    lines = ["Findings", *table(rows, "  "), *engines]
    lines += ["", *([f"would stop serve: {problem}" for problem in problems] or ["serve would start"])]
    unread = [variable.advice + " (it may be there for another program)" * variable.common for variable in unread_variables(Path(".env"))]
    lines += ["", "Set, but not read", *(f"  {advice}" for advice in unread)] if unread else []
    settings_by_variable = settings_in_force(settings, defaults=everything)
    lines += ["", "Settings" if everything else "Settings that were set (`agent-memory doctor --all` shows all)"]
    shown = {variable: re.sub(r",(?=\S)", ", ", value) + "   (set)" * is_set for variable, (value, is_set) in settings_by_variable.items()}
    lines += [f"  {variable:42}{value}" for variable, value in shown.items()]
    values = {variable: value for variable, (value, _) in settings_by_variable.items()}
    return Answer({"findings": findings, "not_read": unread, "settings": values}, lines, 1 if problems else 0)


def _finding(name: str, check: Callable[[], str]) -> dict[str, Any]:
    try:
        return {"check": name, "ok": True, "message": check()}
    except AgentMemoryError as error:
        return {"check": name, "ok": False, "message": error.message}


def _port(settings: Settings) -> str:
    with listening(settings.server.host, settings.server.port):
        return f"{settings.server.host}:{settings.server.port} is free"


def _models(settings: Settings) -> str:
    settings, hint = asyncio.run(_choose_model(settings))
    models, ending = settings.models, f"; {hint}" if hint else ""
    if models.use_openai_embeddings and models.use_openai_chat:
        return f"a model server is configured; it is contacted when it is needed{ending}"
    name, folder = find_model(models.local_model)
    return f"{name} in {folder}" + f"; {LATIN_ONLY}" * models.embeds_latin_only + ending


async def _choose_model(settings: Settings) -> tuple[Settings, str]:
    """Choose the model as the server would, but ignore errors that the `redis` check reports."""
    try:
        return await choose_model(settings, url) if (url := _redis_url(settings)) else (settings, "")
    except AgentMemoryError:
        return settings, ""


async def _context(settings: Settings) -> str:
    """Describe the largest request that the chat model accepts."""
    # Importing the SDK takes most of a second. Users without a model server need not wait for it.
    from agent_memory.foundation.llm.openai.chat import OpenAIChat, chat_server

    chat = await OpenAIChat.open(settings, server=chat_server(settings))
    try:
        context = chat.context
        await chat.ask_context()
        await _add_learned(settings, context)
        limit = context.limit
        summary = f"{context.model} at {context.where} takes {limit.tokens} tokens ({_SOURCES[limit.source]})"
        few = chat.room(extract_messages([]), ExtractionAnswer) < _LEAST_ROOM
        return f"{summary}; that is too little for extracting facts" if few else summary
    finally:
        await chat.close()


async def _add_learned(settings: Settings, context: ModelContext) -> None:
    """Add the limit that workers have learned, if Redis responds."""
    options, url = settings.redis, _redis_url(settings)
    if url is None:
        return
    buckets = [Keys(options.key_prefix, number) for number in range(options.buckets)]
    try:
        await take_over_from(url, buckets, context, command_timeout=options.command_timeout_seconds)
    except AgentMemoryError:
        return


def _redis_url(settings: Settings) -> str | None:
    """Return the URL of the configured Redis or a running embedded one, or None."""
    options = settings.redis
    return options.url.get_secret_value() if options.url is not None else running_redis(options.data_dir)


async def _redis(settings: Settings, engines: list[str], *, everything: bool) -> str:
    if settings.redis.url is not None:
        url = settings.redis.url.get_secret_value()
        begun = await is_begun(url, Keys(settings.redis.key_prefix), command_timeout=settings.redis.command_timeout_seconds)
        async with open_runtime(settings, url, begin=begun) as runtime:
            _refuse([problem for bucket in runtime.all for problem in await bucket.watch.look()])
            return runtime.redis_description + ("" if begun else f", without a store of KEY_PREFIX {runtime.keys.prefix} yet")
    with tempfile.TemporaryDirectory(prefix="am-") as folder:
        reports = await examine_engines(Path(folder), all_of_them=True)
    usable = next((report for report in reports if report.problem is None), None)
    # One engine is enough. Missing parts of the others matter only if no engine works.
    if everything or usable is None:
        lines = [f"          - {report.name}: {report.problem or 'works'}" for report in reports]
        engines += [re.sub(r"\S{90,}", lambda path: f"…{path[0][-85:]}", line) for line in lines]  # fits 100 columns
    if usable is None:
        raise StartupError(f"no Redis with the query engine was found; {INSTALL_HINT}")
    folder = settings.redis.data_dir.expanduser().absolute()
    check_data_dir(folder)
    await _check_store(settings, folder)
    return f"embedded, {usable.name}, data in {settings.redis.data_dir}"


async def _check_store(settings: Settings, folder: Path) -> None:
    """Raise StartupError if a data directory does not contain a usable store."""
    options, file = settings.redis, StoreFile(folder)
    buckets = [Keys(options.key_prefix, number) for number in range(options.buckets)]
    file.require_buckets(buckets)
    if (url := running_redis(folder)) is not None:
        _refuse(await inspect_stores(url, buckets, file, command_timeout=options.command_timeout_seconds))
        return
    data = folder / "appendonlydir"
    if file.id_of(buckets[0]) is not None and not (data.is_dir() and any(data.iterdir())):
        raise StartupError(
            f"{file.path} says that {folder} contained the store {file.id_of(buckets[0])}, but its data is gone: restore a backup, "
            f"or accept the loss with `{ACCEPT}`"
        )


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise StartupError("; ".join(dict.fromkeys(problem.message for problem in problems)))
