"""What each feature tells the tests that walk over all: `REGISTRATION` in `registration.py` beside a feature's tests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import httpx

from agent_memory.feature_list import FEATURES
from agent_memory_client import MemoryAPIClient

TESTS = Path(__file__).parent
LEVELS = ("features", "extensions")
Request = tuple[str, str, dict[str, Any], Any]
"""Method, path, query, body."""
Send = Callable[..., Awaitable[Any]]
"""Sends a request (method, path, and what httpx takes) and returns the answer's JSON."""


class Registration:
    """What one feature brings. All of it is empty here: a feature overrides what it has a part in."""

    recorded: ClassVar[Mapping[type[Any], str]] = {}
    """Its services whose calls `tests/support/api.py` records, and the names of these."""
    least_bodies: ClassVar[Mapping[tuple[str, str], dict[str, Any]]] = {}
    """Of each of its routes that takes a body: method and path, and the least body that it takes."""
    path_parts: ClassVar[Mapping[str, str]] = {}
    """The parts of these paths that stand for a parameter of the route."""
    example_ids: ClassVar[Mapping[str, str]] = {}
    """Path parameters whose values the server makes: by the operation whose answer's `id` they are."""
    reads: ClassVar[Sequence[Request]] = ()
    """Requests that whoever may read is answered."""
    writes: ClassVar[Sequence[Request]] = ()
    """Requests that who may only read is refused."""
    searches: ClassVar[Sequence[Request]] = ()
    """Requests that are answered from Redis, and refused while Redis answers nonsense."""
    keyed_writes: ClassVar[Sequence[tuple[str, dict[str, Any], Callable[[Any], Any], Any]]] = ()
    """POSTs that under a key make something once: path, body, what of the answer to a GET of this path shows it, and that."""
    periods: ClassVar[Mapping[str, float]] = {}
    """Its periodic jobs, and from one run to the next how many seconds pass, with and without long-term memory."""
    export_kinds: ClassVar[frozenset[str]] = frozenset()
    """The kinds of its lines in the export of a person whom `fill_person` filled."""
    refused_kinds: ClassVar[frozenset[str]] = frozenset()
    """Those of them that no import of a caller who is limited to a user may bring."""
    attacks: ClassVar[Mapping[str, Callable[[Any], list[Request]]]] = {}
    """Of each of its operations: requests with the hostile ids of `tests/features/access/hostile.py`."""
    fault_kinds: ClassVar[Mapping[str, Callable[[dict[str, set[Any]], dict[str, Any], bool], None]]] = {}
    """Of each kind of intent of its actors: what it does to the states that each of its things may have."""

    def forged_lines(self, ids: Any, user: str) -> list[dict[str, Any]]:
        """Lines of an export that would write over the victim's."""
        return []

    async def fill_victim(self, send: Send, where: dict[str, str]) -> dict[str, str]:
        """Makes what attackers must not see or change; returns the ids that the server gave."""
        return {}

    async def read_victim(self, send: Send, made: Mapping[str, str], where: dict[str, str]) -> list[Any]:
        """All of it, as its owner sees it."""
        return []

    async def fill_person(self, send: Send, user: str) -> None:
        """Makes something of a person, for exports, imports and erasures."""

    async def show_person(self, send: Send, user: str) -> dict[str, Any]:
        """Every answer that tells of it."""
        return {}

    async def fill_erased(self, send: Send, user: str, namespace: str) -> None:
        """Makes everything in which the name of a user could stand."""

    async def fill_moved(self, client: Any) -> set[tuple[str, str]]:
        """Writes what the archived server kept of it into a Redis of that server; returns the kinds and names of what cannot be moved."""
        return set()

    async def check_moved(self, client: MemoryAPIClient) -> None:
        """Reads back what was moved."""

    async def delete_moved(self, rig: Any) -> None:
        """Deletes something that was moved."""

    async def show_moved(self, rig: Any) -> dict[str, Any]:
        """All that stands of it in a rig."""
        return {}

    async def prepare_stranger(self, http: httpx.AsyncClient, namespace: str) -> tuple[list[tuple[str, str, Any]], list[str]]:
        """Makes something; returns requests (method, path, body) that must gain a stranger nothing, and paths that must stay readable."""
        return [], []

    old_scenarios: ClassVar[int] = 0
    """How many scenarios its `oldclient_part.py` adds to the program for the archived Python client."""
    npm_scenarios: ClassVar[int] = 0
    """How many its `npm_part.mjs` adds to that for the npm client."""
    old_readings: ClassVar[frozenset[str]] = frozenset()
    """The methods of that client that show no memories, but something of this feature."""

    async def fill_for_reading(self, send: Callable[[str, str, Any], Awaitable[Any]], namespace: str) -> None:
        """Makes what these methods read, by requests of a method, a path and a body."""

    def prompts_of(self, text: str, shown: Sequence[Any]) -> list[Any]:
        """Prompts to a model with this text wherever a stored one could stand; `shown` are messages of it."""
        return []

    def fault_actors(self, common: tuple[Any, ...]) -> list[Any]:
        """Actors of the mixed run of faults, made of what each takes."""
        return []

    async def check_faults(self, client: Any, keys: Any, states: Mapping[str, set[Any]], stored: set[str], found: Any) -> None:
        """Compares what Redis holds with the states that its actors' intents allow, and notes what is wrong."""


def parts(name: str) -> list[str]:
    """The files of this name that announced features have beside their tests."""
    files = [TESTS / level / feature.name / name for feature in FEATURES for level in LEVELS]
    return [str(file) for file in files if file.exists()]


@cache
def registrations() -> tuple[Registration, ...]:
    """Those of the features that are announced."""
    folders = [Path(file).parent.relative_to(TESTS) for file in parts("registration.py")]
    return tuple(import_module(f"tests.{'.'.join(folder.parts)}.registration").REGISTRATION for folder in folders)
