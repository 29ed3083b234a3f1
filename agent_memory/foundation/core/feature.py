"""Define `Feature`: everything that a feature adds to the server. `feature_list.py` collects the features."""

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
    """One kind of Redis key. `name` omits `<prefix>:{<bucket>}:`. Each `<…>` represents a value's digest."""

    name: str
    type: str
    holds: str
    lifetime: str
    personal: bool = True
    """True if the key can hold personal data. Erasures delete it; exports include it unless `not_exported` is set."""
    not_exported: str = ""
    """The reason exports omit this personal data, or "" if they include it."""


class Owner(NamedTuple):
    """A user within a tenant: in one namespace, or in all namespaces if `namespace` is None."""

    namespace: str | None
    user_id: str


class AgentOwner(NamedTuple):
    """An agent within a tenant: in one namespace, or in all namespaces if `namespace` is None.

    Includes data with and without a user.
    """

    namespace: str | None
    agent_id: str


class Group(NamedTuple):
    """The owner and the type of the memories that a feature derived data from."""

    namespace: str | None
    user_id: str | None
    session_id: str | None
    memory_type: str


@dataclass(frozen=True, slots=True)
class Example:
    """An example request: its operation's id, its path and query `parameters`, and its body."""

    operation_id: str
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    body: Any = None


class Exporter(Protocol):
    """An interface for exporting and importing the data that a feature stores for a user."""

    @property
    def kinds(self) -> Sequence[str]:
        """The values that `kind` can have in this exporter's lines."""
        ...

    def export_lines(self, scope: Scope, owner: Owner) -> AsyncIterator[ExportLine]:
        """Yield the owner's data within `scope` as export lines."""
        ...

    async def restore_line(self, scope: Scope, target: RestoreTarget, line: ExportLine) -> str:
        """Import a line. Return "new", "same" (already stored), or "other" (differs from stored data).

        Raises AgentMemoryError.
        """
        ...


class RestoreTarget(Protocol):
    """The new owner of imported lines."""

    @property
    def user_id(self) -> str:
        """The user who will own the imported data; "" if an agent's data or a whole store is imported."""
        ...

    @property
    def source(self) -> str:
        """The name of the import."""
        ...

    def user(self, user_id: str | None, /) -> str | None:
        """Return the user that an imported line belongs to in this store. Without `user_id`, the line keeps its user."""
        ...

    def agent(self, agent_id: str | None, /) -> str | None: ...

    def namespace(self, namespace: str | None, /) -> str | None: ...

    def moved(self, namespace: str | None, /) -> bool:
        """True if data imported from this namespace becomes a copy or gets a different owner or namespace."""
        ...


@runtime_checkable
class AgentExporter(Exporter, Protocol):
    """An exporter that can also export an agent's data."""

    def export_agent(self, scope: Scope, owner: AgentOwner) -> AsyncIterator[ExportLine]:
        """Yield the agent's data within `scope` as export lines."""
        ...


@runtime_checkable
class UndoableExporter(Exporter, Protocol):
    """An exporter that can also undo what it imported."""

    async def undo_import(self, scope: Scope, owner: Owner | AgentOwner, source: str, *, dry_run: bool) -> Counter[str]:
        """Delete the owner's data that the import `source` stored, unless the data has changed since then.

        With `dry_run`, only count it. Return the number of objects by kind.
        """
        ...


class SessionPart(Protocol):
    """A feature's own fields in a session's hash. Exports include these fields in the session's export line."""

    @property
    def part(self) -> str:
        """The key of the feature's fields in a session's export line."""
        ...

    def export_part(self, fields: Mapping[bytes, bytes]) -> Any:
        """Return the feature's fields from a session's hash, or None if the hash does not contain any."""
        ...

    def restore_part(self, scope: Scope, target: RestoreTarget, part: Any, messages: int) -> Mapping[str, str]:
        """Return the hash fields to store for an imported `part`. `messages` is the number of messages in the session.

        Raises BadInput and Forbidden.
        """
        ...

    async def resume_part(self, scope: Scope, session: SessionRef) -> None:
        """Schedule this feature's unfinished background work for a session that was just imported. Idempotent."""
        ...


class Eraser(Protocol):
    """An interface for deleting the data that a feature stores for a user. Other code deletes sessions and memories."""

    async def erase_owner(self, scope: Scope, owner: Owner) -> Counter[str]:
        """Delete the owner's data. Return the number of deleted objects by kind."""
        ...


@runtime_checkable
class SessionEraser(Eraser, Protocol):
    """An eraser that can also delete data derived from one session."""

    async def erase_session(self, scope: Scope, session: SessionRef) -> Counter[str]:
        """Delete data derived from a session that a caller deletes with `memories=true`.

        Return the number of deleted objects by kind.
        """
        ...


@runtime_checkable
class AgentEraser(Eraser, Protocol):
    """An eraser that can also delete an agent's data."""

    async def erase_agent(self, scope: Scope, owner: AgentOwner) -> Counter[str]:
        """Delete the agent's data. Return the number of deleted objects by kind."""
        ...


class Purger(Protocol):
    """An interface for deleting the data that a feature derived from purged memories."""

    async def purge_groups(self, scope: Scope, groups: Collection[Group], *, dry_run: bool) -> Counter[str]:
        """Delete data that the feature may have derived from memories in these groups. With `dry_run`, only count it.

        Return the number of objects by kind.
        """
        ...


@runtime_checkable
class ForgetPurger(Purger, Protocol):
    """A purger that a request to forget calls differently, because the request can be undone."""

    async def follow_forgetting(self, scope: Scope, groups: Collection[Group]) -> None:
        """Update what depends on memories in these groups, without deleting what an undo needs. Also called after an undo."""
        ...


class Follower(Protocol):
    """An interface for updating data that a feature derives from memories, such as a profile, when the memories change."""

    async def follow_memories(self, mids: Sequence[str]) -> None:
        """Update the data derived from these memories, and delete the data derived from deleted memories.

        To find a deleted memory's data, profiles store a key for each memory (`pfo:<mid>`) that says where its data is.
        Implementations must be idempotent and must not depend on the order of calls, because workers may repeat a call.
        Use each memory's version to reject outdated writes.
        """
        ...


class ExtractionGuide(Protocol):
    """An interface for adding a feature's instructions to the fact extraction prompt."""

    async def extraction_instructions(self, scope: Scope, namespace: str | None) -> Sequence[str]:
        """Return sentences to add to the prompts for sessions in this namespace."""
        ...


class Services:
    """The services of one bucket. `services[Type]` returns the service of that type."""

    def __init__(self) -> None:
        self._by_type: dict[type[Any], Any] = {}
        self.exporters: list[Exporter] = []
        self.session_parts: list[SessionPart] = []
        self.erasers: list[Eraser] = []
        self.purgers: list[Purger] = []
        self.followers: list[Follower] = []
        self.guides: list[ExtractionGuide] = []
        self.sections: list[AnnouncedSection] = []

    def add(self, *services: Any) -> None:
        """Add services. Raises ValueError if a service of the same type already exists."""
        for service in services:
            if type(service) in self._by_type:
                raise ValueError(f"there are two of {type(service).__name__}")
            self._by_type[type(service)] = service

    def __getitem__(self, kind: type[T]) -> T:
        return self._by_type[kind]

    def open(self, feature: Feature, foundation: Any) -> None:
        """Open a feature and register its services for exports, erasures, purges, follow-ups, and prompts."""
        feature.open(foundation, self)
        for parts, kind in (
            (self.exporters, feature.exporter),
            (self.session_parts, feature.session_part),
            (self.erasers, feature.eraser),
            (self.purgers, feature.purger),
            (self.followers, feature.follower),
            (self.guides, feature.guide),
            (self.sections, feature.section),
        ):
            if kind is not None:
                parts.append(self._by_type[kind])


class PeriodicJob(NamedTuple):
    """Recurring work that one worker does once per period."""

    run: str
    """Import string of an async function that takes the runtime and returns a count."""
    minutes: Callable[[Settings], float | None]
    """Return the number of minutes between two runs, or None if the job is off."""


def while_enabled(minutes: float) -> Callable[[Settings], float | None]:
    """Return a `PeriodicJob.minutes` function for a job that runs only while long-term memory is on."""
    return lambda settings: minutes if settings.longterm.enabled else None


@dataclass(frozen=True, slots=True)
class Feature:
    """Everything that one feature adds to the server.

    Import strings ("module:name") refer to modules that only some processes need; these modules load on demand.
    """

    name: str
    open: Callable[[Any, Services], None] = lambda _foundation, _services: None
    """Create the feature's services and add them. Takes the foundation and the services of earlier features.

    The process calls this function for each bucket when it starts, and again after the embedding model has changed.
    """
    keys: Sequence[KeySpace] = ()
    indexes: Callable[[Any, Any], Mapping[str, Any]] | None = None
    """Return redisvl schemas by kind. Takes a bucket's keys and the vectors of its embedding model."""
    routes: Sequence[str] = ()
    examples: str | None = None
    """Import string of the examples for the feature's routes in the OpenAPI document."""
    jobs: Mapping[str, str] = field(default_factory=dict[str, str])
    """Maps a job's stored name to the import string of an async function that takes the runtime and the job."""
    due_work: Mapping[DueKind, str] = field(default_factory=dict[DueKind, str])
    """Maps a kind to the import string of an async function that takes the runtime and the members of due marks."""
    schedule: Mapping[str, PeriodicJob] = field(default_factory=dict[str, PeriodicJob])
    background: Sequence[str] = ()
    """Import strings of async functions that each worker runs, per bucket, as long as it lives. They take the runtime, and
    an event that is set when the worker stops. A stopping worker cancels them. After an exception, they start again."""
    embed_missing: str | None = None
    """Import string of an async function that takes a runtime and a limit. It embeds at most that many of the feature's
    documents without a vector of the runtime's model, and returns their number."""
    exporter: type[Exporter] | None = None
    session_part: type[SessionPart] | None = None
    eraser: type[Eraser] | None = None
    purger: type[Purger] | None = None
    follower: type[Follower] | None = None
    guide: type[ExtractionGuide] | None = None
    section: type[AnnouncedSection] | None = None
    """The feature's section of the memory prompt.

    `agent_memory_client.models.features.prompt_options` defines its options.
    """
    tools: Sequence[str] = ()
    """Import strings of the feature's MCP tools. Each import string refers to a `ToolSet`."""


def import_name(name: str) -> Any:
    """Import and return the object that an import string ("module:name") refers to."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


Job = Callable[[Any, Any], Awaitable[None]]
