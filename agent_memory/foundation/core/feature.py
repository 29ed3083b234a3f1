"""The interface that a feature announces to the rest of the server; `feature_list.py` collects them."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from agent_memory.foundation.core.prompt_sections import AnnouncedSection
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.core.task_kinds import DueKind

T = TypeVar("T")
ExportLine = Mapping[str, Any]


class KeySpace(NamedTuple):
    """One kind of Redis key, behind `<prefix>:{<bucket>}:`. `<…>` in a name is a digest of that value."""

    name: str
    type: str
    holds: str
    lifetime: str
    personal: bool = True
    """True if it can hold a user's data: then an erasure deletes it, and an export has it or names the reason."""
    not_exported: str = ""
    """Why an export leaves personal data out."""


class Owner(NamedTuple):
    """A user of a tenant, in one namespace or (None) in all."""

    namespace: str | None
    user_id: str


class AgentOwner(NamedTuple):
    """An agent of a tenant, in one namespace or (None) in all; with or without a user."""

    namespace: str | None
    agent_id: str


class Group(NamedTuple):
    """The owner and type of memories that something was derived from."""

    namespace: str | None
    user_id: str | None
    session_id: str | None
    memory_type: str


@dataclass(frozen=True, slots=True)
class Example:
    """An example request: path and query `parameters`, and a body."""

    operation_id: str
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    body: Any = None


class Exporter(Protocol):
    """Write a feature's part of a user's export, and read it again."""

    @property
    def kinds(self) -> Sequence[str]:
        """The `kind` of each of its lines."""
        ...

    def export_lines(self, scope: Scope, owner: Owner) -> AsyncIterator[ExportLine]:
        """Yield the lines of the owner's data within `scope`."""
        ...

    async def restore_line(self, scope: Scope, target: RestoreTarget, line: ExportLine) -> str:
        """Import a line. Return "new", "same" (already stored) or "other" (conflict). Raises AgentMemoryError."""
        ...


class RestoreTarget(Protocol):
    """The new owner of imported lines."""

    @property
    def user_id(self) -> str:
        """The user of a user's import; "" for an agent's import."""
        ...

    def user(self, user_id: str | None, /) -> str | None:
        """Return the new user of a line; an agent's import keeps the old one."""
        ...

    def agent(self, agent_id: str | None, /) -> str | None: ...

    def namespace(self, namespace: str | None, /) -> str | None: ...

    def moved(self, namespace: str | None, /) -> bool:
        """True if data of this namespace changes its owner."""
        ...


@runtime_checkable
class AgentExporter(Exporter, Protocol):
    """An exporter of data that agents have, too."""

    def export_agent(self, scope: Scope, owner: AgentOwner) -> AsyncIterator[ExportLine]:
        """Yield the lines of the agent's data within `scope`."""
        ...


class SessionPart(Protocol):
    """A feature's fields in a session's hash, exported as a part of the session's line."""

    @property
    def part(self) -> str:
        """Its name in the line."""
        ...

    def export_part(self, fields: Mapping[bytes, bytes]) -> Any:
        """Return the part of a session's hash, None without one."""
        ...

    def restore_part(self, scope: Scope, target: RestoreTarget, part: Any, messages: int) -> Mapping[str, str]:
        """Return the fields of a part, for a session of `messages` messages. Raises BadInput, Forbidden."""
        ...

    async def resume_part(self, scope: Scope, session: SessionRef) -> None:
        """Order the pending work of the part after its session is imported; idempotent."""
        ...


class Eraser(Protocol):
    """Delete a feature's data of a user, beside sessions and memories."""

    async def erase_owner(self, scope: Scope, owner: Owner) -> Counter[str]:
        """Delete it; return the counts by kind."""
        ...


@runtime_checkable
class SessionEraser(Eraser, Protocol):
    """An eraser of data derived from sessions, too."""

    async def erase_session(self, scope: Scope, session: SessionRef) -> Counter[str]:
        """Delete data derived from the session; return the counts by kind."""
        ...


@runtime_checkable
class AgentEraser(Eraser, Protocol):
    """An eraser of data that agents have, too."""

    async def erase_agent(self, scope: Scope, owner: AgentOwner) -> Counter[str]:
        """Delete the agent's data; return the counts by kind."""
        ...


class Purger(Protocol):
    """Delete a feature's data derived from purged memories."""

    async def purge_groups(self, scope: Scope, groups: Collection[Group], *, dry_run: bool) -> Counter[str]:
        """Delete, or with `dry_run` count, data that may derive from memories of these groups."""
        ...


class Follower(Protocol):
    """Keep a feature's data in step with the memories it is derived from (a profile)."""

    async def follow_memories(self, mids: Sequence[str]) -> None:
        """Update data derived from these memories (names in keys) from their current state; drop it for deleted ones.

        Idempotent and independent of order: workers may repeat a call. Each memory's version fences it.
        """
        ...


class ExtractionGuide(Protocol):
    """Add a feature's instructions to the prompt that extracts facts."""

    async def extraction_instructions(self, scope: Scope, namespace: str | None) -> Sequence[str]:
        """Return sentences for the model, for sessions of this namespace."""
        ...


class ArchivedSummaries(Protocol):
    """Import summary views of the archived server."""

    async def bring_in_view(self, scope: Scope, values: dict[str, Any], *, dry_run: bool) -> bool:
        """Return True if the view is new here. Raises ValueError for an unusable one."""
        ...

    async def bring_in_partition(self, scope: Scope, values: dict[str, Any], *, dry_run: bool) -> bool | None:
        """Return True if the partition is new here, None without its view. Raises ValueError."""
        ...


class Services:
    """The opened services of one bucket, found by type."""

    def __init__(self) -> None:
        self._by_type: dict[type[Any], Any] = {}
        self.exporters: list[Exporter] = []
        self.session_parts: list[SessionPart] = []
        self.erasers: list[Eraser] = []
        self.purgers: list[Purger] = []
        self.archived: list[ArchivedSummaries] = []
        self.followers: list[Follower] = []
        self.guides: list[ExtractionGuide] = []
        self.sections: list[AnnouncedSection] = []

    def add(self, *services: Any) -> None:
        """Add services. Raises ValueError for a second one of a type."""
        for service in services:
            if type(service) in self._by_type:
                raise ValueError(f"there are two of {type(service).__name__}")
            self._by_type[type(service)] = service

    def __getitem__(self, kind: type[T]) -> T:
        return self._by_type[kind]

    def open(self, feature: Feature, foundation: Any) -> None:
        """Open a feature and register its services for exports, erasures, purges, follow-ups and prompts."""
        feature.open(foundation, self)
        for parts, kind in (
            (self.exporters, feature.exporter),
            (self.session_parts, feature.session_part),
            (self.erasers, feature.eraser),
            (self.purgers, feature.purger),
            (self.archived, feature.archived),
            (self.followers, feature.follower),
            (self.guides, feature.guide),
            (self.sections, feature.section),
        ):
            if kind is not None:
                parts.append(self._by_type[kind])


class PeriodicJob(NamedTuple):
    """Recurring work, done once per period by all workers together."""

    run: str
    """Import string of an async function of the runtime that returns a count."""
    minutes: Callable[[Settings], float | None]
    """Minutes between two runs; None while switched off."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature. Import strings ("module:name") name modules that only some processes load."""

    name: str
    open: Callable[[Any, Services], None]
    """Add its services, given the foundation and the services of earlier features."""
    keys: Sequence[KeySpace] = ()
    indexes: Callable[[Any, Any], Mapping[str, Any]] | None = None
    """Return redisvl schemas by kind, given a bucket's keys and the vectors of its embedding model."""
    routes: Sequence[str] = ()
    examples: str | None = None
    """Examples of its routes in the OpenAPI document."""
    jobs: Mapping[str, str] = field(default_factory=dict[str, str])
    """Async functions of the runtime and a job, by the job's stored name."""
    due_work: Mapping[DueKind, str] = field(default_factory=dict[DueKind, str])
    """Import strings of async functions of the runtime and the members of due marks."""
    schedule: Mapping[str, PeriodicJob] = field(default_factory=dict[str, PeriodicJob])
    exporter: type[Exporter] | None = None
    session_part: type[SessionPart] | None = None
    eraser: type[Eraser] | None = None
    purger: type[Purger] | None = None
    archived: type[ArchivedSummaries] | None = None
    follower: type[Follower] | None = None
    guide: type[ExtractionGuide] | None = None
    section: type[AnnouncedSection] | None = None
    """Its part of the memory prompt; options of requests are in `agent_memory_client.models.features.prompt_options`.
    """
    tools: Sequence[str] = ()
    """MCP tools: each names a `ToolSet`."""


def import_name(name: str) -> Any:
    """Import the object that "module:name" names."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


Job = Callable[[Any, Any], Awaitable[None]]
