"""`agent-memory doctor`: what was found, and what would stop `serve`."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, SecretStr

from agent_memory.cli.run import check_redis_url
from agent_memory.cli.sockets import listening
from agent_memory.embedded_engine import INSTALL_HINT, examine_engines
from agent_memory.errors import AgentMemoryError, StartupError
from agent_memory.llm.weights import PACKAGED_NAME, packaged_directory
from agent_memory.logs import without_secrets
from agent_memory.retired import unread_variables
from agent_memory.runtime import open_runtime
from agent_memory.settings import Settings, load_settings, variables


def doctor(given: dict[str, str]) -> list[str]:
    """Prints the findings; returns what would stop `serve`."""
    settings = load_settings(**given)
    problems: list[str] = []
    _settings_in_force(settings)
    _not_read()
    print("\nFindings")
    _check(problems, "port", lambda: _port(settings))
    _check(problems, "models", lambda: _models(settings))
    _check(problems, "redis", lambda: asyncio.run(_redis(settings)))
    print("\n" + ("\n".join(f"would stop serve: {problem}" for problem in problems) or "serve would start"))
    return problems


def _check(problems: list[str], name: str, look: Callable[[], str]) -> None:
    try:
        print(f"  {name:8}ok   {look()}")
    except AgentMemoryError as error:
        problems.append(error.message)
        print(f"  {name:8}BAD  {error.message}")


def _settings_in_force(settings: Settings) -> None:
    print("Settings")
    first: dict[tuple[str, str], str] = {}
    for variable, place in variables().items():
        first.setdefault(place, variable)
    for (group, field), variable in first.items():
        part: BaseModel = getattr(settings, group)
        value: object = getattr(part, field)
        default: object = type(part).model_fields[field].default
        shown = "(hidden)" if isinstance(value, SecretStr) else "-" if value is None else without_secrets(str(value))
        print(f"  {variable:42}{shown}{'' if value == default else '   (set)'}")


def _not_read() -> None:
    found = unread_variables(Path(".env"))
    if found:
        print("\nSet, but not read")
    for one in found:
        print(f"  {one.advice}{' (it may be there for another program)' if one.common else ''}")


def _port(settings: Settings) -> str:
    with listening(settings.server.host, settings.server.port):
        return f"{settings.server.host}:{settings.server.port} is free"


def _models(settings: Settings) -> str:
    models = settings.models
    if models.use_openai_embeddings and models.use_openai_chat:
        return "a model server is configured; it is asked when it is needed"
    if models.local_model_dir is not None:
        if not models.local_model_dir.is_dir():
            raise StartupError(f"LOCAL_MODEL_DIR {models.local_model_dir} is not a directory")
        return f"local model in {models.local_model_dir}"
    return f"{PACKAGED_NAME} in {packaged_directory()}"


async def _redis(settings: Settings) -> str:
    if settings.redis.url is not None:
        check_redis_url(settings)
        async with open_runtime(settings, settings.redis.url.get_secret_value()) as runtime:
            return runtime.redis_description
    with tempfile.TemporaryDirectory(prefix="am-") as folder:
        reports = await examine_engines(Path(folder), all_of_them=True)
    for report in reports:
        print(f"          - {report.name}: {report.problem or 'works'}")
    usable = next((report for report in reports if report.problem is None), None)
    if usable is None:
        raise StartupError(f"no Redis with the query engine was found; {INSTALL_HINT}")
    _check_data_dir(settings.redis.data_dir.expanduser().absolute())
    return f"embedded, {usable.name}, data in {settings.redis.data_dir}"


def _check_data_dir(folder: Path) -> None:
    """Raises StartupError when the data directory exists and cannot be written, or cannot be made."""
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise StartupError(f"the data directory {folder} cannot be written")
