"""`agent-memory doctor`: what was found, and what would stop `serve`."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, SecretStr

from agent_memory.features.extraction.prompts import ExtractionAnswer, extract_messages
from agent_memory.foundation.core.errors import AgentMemoryError, StartupError
from agent_memory.foundation.core.logs import without_secrets
from agent_memory.foundation.core.settings import Settings, load_settings, variables
from agent_memory.foundation.core.settings.renamed import unread_variables
from agent_memory.foundation.embedded.engine import INSTALL_HINT, examine_engines
from agent_memory.foundation.embedded.server import running_redis
from agent_memory.foundation.llm.local.weights import LATIN_ONLY, PACKAGES, find_package
from agent_memory.foundation.llm.model_context import ModelContext
from agent_memory.foundation.storage.context_limits import learned_at
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.store_marker import StoreFile
from agent_memory.foundation.storage.store_watch import ACCEPT, Problem, inspect_stores
from agent_memory.interfaces.cli.run import check_redis_url
from agent_memory.interfaces.cli.sockets import listening
from agent_memory.interfaces.cli.store import is_begun
from agent_memory.runtime import open_runtime

_SOURCES = {
    "set": "set by MODEL_CONTEXT_WINDOWS",
    "told": "told by the server",
    "learned": "learned from a refusal",
    "assumed": "assumed: the server does not tell it; MODEL_CONTEXT_WINDOWS sets it",
}
# Tokens for messages and answer beside the instructions; with less, facts are taken a sentence at a time or not at all.
_LEAST_ROOM = 512


def doctor(overrides: dict[str, str], *, everything: bool = False) -> list[str]:
    """Print the findings, then the settings; return what would stop `serve`.

    Without `everything` only settings that were set are shown, and of engines the one that is used.
    """
    settings = load_settings(**overrides)
    problems: list[str] = []
    print("Findings")
    _check(problems, "port", lambda: _port(settings))
    _check(problems, "models", lambda: _models(settings))
    if settings.models.use_openai_chat:
        _check(problems, "context", lambda: asyncio.run(_context(settings)))
    _check(problems, "redis", lambda: asyncio.run(_redis(settings, everything=everything)))
    print("\n" + ("\n".join(f"would stop serve: {problem}" for problem in problems) or "serve would start"))
    _not_read()
    _settings_in_force(settings, everything=everything)
    return problems


def _check(problems: list[str], name: str, look: Callable[[], str]) -> None:
    try:
        print(f"  {name:8}ok   {look()}")
    except AgentMemoryError as error:
        problems.append(error.message)
        print(f"  {name:8}BAD  {error.message}")


def _settings_in_force(settings: Settings, *, everything: bool) -> None:
    print("\nSettings" if everything else "\nSettings that were set (`agent-memory doctor --all` shows all)")
    first: dict[tuple[str, str], str] = {}
    for variable, setting in variables().items():
        first.setdefault(setting, variable)
    for (group, field), variable in first.items():
        part: BaseModel = getattr(settings, group)
        value: object = getattr(part, field)
        default: object = type(part).model_fields[field].default
        if value == default and not everything:
            continue
        shown = "(hidden)" if isinstance(value, SecretStr) else "-" if value is None else without_secrets(str(value))
        print(f"  {variable:42}{shown}{'' if value == default else '   (set)'}")


def _not_read() -> None:
    unread = unread_variables(Path(".env"))
    if unread:
        print("\nSet, but not read")
    for variable in unread:
        print(f"  {variable.advice}{' (it may be there for another program)' if variable.common else ''}")


def _port(settings: Settings) -> str:
    with listening(settings.server.host, settings.server.port):
        return f"{settings.server.host}:{settings.server.port} is free"


def _models(settings: Settings) -> str:
    models = settings.models
    if models.use_openai_embeddings and models.use_openai_chat:
        return "a model server is configured; it is asked when it is needed"
    if models.local_model not in PACKAGES:
        if not Path(models.local_model).is_dir():
            raise StartupError(f"LOCAL_MODEL {models.local_model} is neither a directory nor one of {', '.join(PACKAGES)}")
        return f"local model in {models.local_model}"
    about = f"; {LATIN_ONLY}" if models.embeds_latin_only else ""
    return f"{models.local_model} in {find_package(models.local_model)}{about}"


async def _context(settings: Settings) -> str:
    """How large a request the generation model takes, and from where that is known. The server is asked; workers' findings are in Redis."""
    # The SDK costs most of a second, which nobody without a model server need wait for.
    from agent_memory.foundation.llm.openai.chat import OpenAIChat, chat_server  # noqa: PLC0415

    chat = await OpenAIChat.open(settings, server=chat_server(settings))
    try:
        context = chat.context
        await chat.ask_context()
        await _add_learned(settings, context)
        limit = context.limit
        summary = f"{context.model} at {context.where} takes {limit.tokens} tokens ({_SOURCES[limit.source]})"
        few = chat.room(extract_messages([]), ExtractionAnswer) < _LEAST_ROOM
        return f"{summary}; that is too little for taking facts" if few else summary
    finally:
        await chat.close()


async def _add_learned(settings: Settings, context: ModelContext) -> None:
    """Adds what workers learned, as far as Redis answers: whether it does is another finding."""
    options = settings.redis
    url = options.url.get_secret_value() if options.url is not None else running_redis(options.data_dir)
    if url is None:
        return
    buckets = [Keys(options.key_prefix, number) for number in range(options.buckets)]
    try:
        learned = await learned_at(url, buckets, context.where, context.model, command_timeout=options.command_timeout_seconds)
    except AgentMemoryError:
        return
    if learned is not None:
        context.take_over(learned.tokens, learned.seconds)


async def _redis(settings: Settings, *, everything: bool) -> str:
    if settings.redis.url is not None:
        check_redis_url(settings)
        url = settings.redis.url.get_secret_value()
        begun = await is_begun(settings, url)
        async with open_runtime(settings, url, begin=begun) as runtime:
            _refuse(list((await runtime.ready()).problems) if begun else [])
            return runtime.redis_description + ("" if begun else f", without a store of KEY_PREFIX {runtime.keys.prefix} yet")
    with tempfile.TemporaryDirectory(prefix="am-") as folder:
        reports = await examine_engines(Path(folder), all_of_them=True)
    usable = next((report for report in reports if report.problem is None), None)
    # Of several engines one is enough: what others lack matters only where none works.
    for report in reports if everything or usable is None else ():
        print(f"          - {report.name}: {report.problem or 'works'}")
    if usable is None:
        raise StartupError(f"no Redis with the query engine was found; {INSTALL_HINT}")
    folder = settings.redis.data_dir.expanduser().absolute()
    _check_data_dir(folder)
    await _check_store(settings, folder)
    return f"embedded, {usable.name}, data in {settings.redis.data_dir}"


def _check_data_dir(folder: Path) -> None:
    """Raises StartupError when the data directory exists and cannot be written, or cannot be made."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise StartupError(f"the data directory {folder} cannot be written")


async def _check_store(settings: Settings, folder: Path) -> None:
    """Raises StartupError when the store that was in a data directory is gone, or cannot be used."""
    options, file = settings.redis, StoreFile(folder)
    buckets = [Keys(options.key_prefix, number) for number in range(options.buckets)]
    url = running_redis(folder)
    if url is not None:
        _refuse(await inspect_stores(url, buckets, file, command_timeout=options.command_timeout_seconds))
        return
    data = folder / "appendonlydir"
    if file.id_of(buckets[0]) is not None and not (data.is_dir() and any(data.iterdir())):
        raise StartupError(
            f"{file.path} says that {folder} held the store {file.id_of(buckets[0])}, but its data are gone: put a backup back, "
            f"or accept the loss with `{ACCEPT}`"
        )


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise StartupError("; ".join(problem.message for problem in problems))
