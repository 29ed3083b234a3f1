"""Describe each feature to the tests that cover all features.

Each feature's tests include a `registration.py` that defines `REGISTRATION`.
"""

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
"""Sends a request (method, path, and httpx arguments) and returns the JSON of the response."""


class Registration:
    """What a feature contributes to shared tests. Features override the empty defaults."""

    recorded: ClassVar[Mapping[type[Any], str]] = {}
    """Its services whose calls `tests/support/api.py` records, and their names."""
    least_bodies: ClassVar[Mapping[tuple[str, str], dict[str, Any]]] = {}
    """For each route with a body: method and path, and the smallest valid body."""
    path_parts: ClassVar[Mapping[str, str]] = {}
    """The segments of these paths that fill a parameter of the route."""
    example_ids: ClassVar[Mapping[str, str]] = {}
    """Path parameters whose values the server assigns: by the operation whose response has them as `id`."""
    reads: ClassVar[Sequence[Request]] = ()
    """Requests that a caller with read access may send."""
    writes: ClassVar[Sequence[Request]] = ()
    """Requests that the server refuses for a read-only caller."""
    searches: ClassVar[Sequence[Request]] = ()
    """Requests that read from Redis, and fail while Redis returns nonsense."""
    keyed_writes: ClassVar[Sequence[tuple[str, dict[str, Any], Callable[[Any], Any], Any]]] = ()
    """POSTs that create one object per idempotency key: path, body, the part of a GET response that shows it, and that GET path."""
    periods: ClassVar[Mapping[str, float]] = {}
    """Its periodic jobs, and the seconds between two runs, with and without long-term memory."""
    export_kinds: ClassVar[frozenset[str]] = frozenset()
    """The kinds of its lines in the export of a user that `fill_person` filled."""
    refused_kinds: ClassVar[frozenset[str]] = frozenset()
    """The kinds among them that a caller limited to a user may not import."""
    attacks: ClassVar[Mapping[str, Callable[[Any], list[Request]]]] = {}
    """For each of its operations: requests with the hostile ids of `tests/features/access/hostile.py`."""
    fault_kinds: ClassVar[Mapping[str, Callable[[dict[str, set[Any]], dict[str, Any], bool], None]]] = {}
    """For each kind of intent of its actors: its effect on the possible states of an object."""

    def forged_lines(self, ids: Any, user: str) -> list[dict[str, Any]]:
        """Return export lines that would overwrite the victim's data."""
        return []

    async def fill_victim(self, send: Send, where: dict[str, str]) -> dict[str, str]:
        """Create data that attackers must not see or change, and return its ids."""
        return {}

    async def read_victim(self, send: Send, made: Mapping[str, str], where: dict[str, str]) -> list[Any]:
        """Return all of the victim's data as its owner sees it."""
        return []

    async def fill_person(self, send: Send, user: str) -> None:
        """Create a user's data for exports, imports and erasures."""

    async def show_person(self, send: Send, user: str) -> dict[str, Any]:
        """Return every response that contains the user's data."""
        return {}

    async def fill_erased(self, send: Send, user: str, namespace: str) -> None:
        """Create every kind of data that could contain a user's name."""

    async def fill_moved(self, client: Any) -> set[tuple[str, str]]:
        """Write data in the archived server's format, and return whatever cannot be migrated."""
        return set()

    async def check_moved(self, client: MemoryAPIClient) -> None:
        """Check that a client can read the migrated data."""

    async def delete_moved(self, rig: Any) -> None:
        """Delete one migrated object."""

    async def show_moved(self, rig: Any) -> dict[str, Any]:
        """Return all of the feature's data in a rig."""
        return {}

    async def prepare_stranger(self, http: httpx.AsyncClient, namespace: str) -> tuple[list[tuple[str, str, Any]], list[str]]:
        """Create an object. Return requests from strangers, and paths that must stay readable.

        The requests (method, path, body) must neither reveal nor change the object.
        """
        return [], []

    old_scenarios: ClassVar[int] = 0
    """Number of scenarios that its `oldclient_part.py` adds to the program for the archived Python client."""
    npm_scenarios: ClassVar[int] = 0
    """Number of scenarios that its `npm_part.mjs` adds to the program for the npm client."""
    old_readings: ClassVar[frozenset[str]] = frozenset()
    """Methods of that client that return data of this feature instead of memories."""

    async def fill_for_reading(self, send: Callable[[str, str, Any], Awaitable[Any]], namespace: str) -> None:
        """Create the data that the archived client's methods read."""

    def prompts_of(self, text: str, shown: Sequence[Any]) -> list[Any]:
        """Return prompts that contain this text wherever stored text can appear.

        `shown` are messages that contain the text.
        """
        return []

    def fault_actors(self, common: tuple[Any, ...]) -> list[Any]:
        """Return the feature's actors for the fault harness."""
        return []

    async def check_faults(self, client: Any, keys: Any, states: Mapping[str, set[Any]], stored: set[str], found: Any) -> None:
        """Compare the data in Redis with the possible states, and report differences."""


def parts(name: str) -> list[str]:
    """Return the files with this name among the features' tests."""
    files = [TESTS / level / feature.name / name for feature in FEATURES for level in LEVELS]
    return [str(file) for file in files if file.exists()]


@cache
def registrations() -> tuple[Registration, ...]:
    """Return the registrations of all features."""
    folders = [Path(file).parent.relative_to(TESTS) for file in parts("registration.py")]
    return tuple(import_module(f"tests.{'.'.join(folder.parts)}.registration").REGISTRATION for folder in folders)
