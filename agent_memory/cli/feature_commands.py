"""The commands that features bring: `register` in `agent_memory/<feature>/commands.py` adds them to the program.

They are found by that name instead of by the features' announcements, which take a second and a half to import; such a module imports
nothing heavy, for `agent-memory --help` loads all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import typer

import agent_memory


class CallApi(Protocol):
    """Asks the API of a running server (`url`), else that of the configured store."""

    def __call__(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None, *, url: str | None, api_key: str | None
    ) -> Any:
        """The JSON of the answer. Raises NotFound, and StartupError for every other refusal."""
        ...


Register = Callable[[typer.Typer, CallApi], None]


def call_api(
    method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None, *, url: str | None, api_key: str | None
) -> Any:
    """As `CallApi`."""
    from agent_memory.cli.api_client import MemoryTarget, reach

    async def ask() -> Any:
        async with reach(MemoryTarget(url, api_key)) as api:
            return await api.call(method, path, query, body)

    return asyncio.run(ask())


def command_modules() -> list[str]:
    """The names of all features' modules of commands."""
    files = [file for path in agent_memory.__path__ for file in Path(path).glob("*/commands.py")]
    return sorted(f"{agent_memory.__name__}.{file.parent.name}.commands" for file in files)


def register(root: typer.Typer, modules: Sequence[str] | None = None) -> None:
    """Adds the commands of all features, or of these modules."""
    for module in command_modules() if modules is None else modules:
        add: Register = import_module(module).register
        add(root, call_api)
