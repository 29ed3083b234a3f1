"""Define `Feature`: everything that a feature adds to the server.

See docs/extending.md for an example. The server creates each feature's objects once per bucket.
"""

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
    """A description of one kind of Redis key.

    `name` is unique and omits `<prefix>:{<bucket>}:`. Each `<…>` represents a value's digest.
    """

    name: str
    type: str
    """The Redis type, such as "hash"."""
    holds: str
    """What the key contains."""
    lifetime: str
    """When the key is deleted."""
    personal: bool = True
    """True if the key can contain personal data."""
    not_exported: str = ""
    """Why exports omit this personal data, or "" if they include it."""


class Owner(NamedTuple):
    """A user in one namespace, or in all namespaces if `namespace` is None."""

    namespace: str | None
    user_id: str


class AgentOwner(NamedTuple):
    """An agent in one namespace, or in all namespaces if `namespace` is None.

    Includes data that is not associated with a user.
    """

    namespace: str | None
    agent_id: str


class Group(NamedTuple):
    """The owner and type of the memories from which a feature derived data."""

    namespace: str | None
    user_id: str | None
    session_id: str | None
    memory_type: str


@dataclass(frozen=True, slots=True)
class Example:
    """An example request, consisting of the operation's id, `parameters`, and body."""

    operation_id: str
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    body: Any = None


class Exporter(Protocol):
    """Exports and imports the data that a feature stores for a user.

    For agents' data, also implement `AgentExporter`. To let users undo an import, also implement `UndoableExporter`.
    """

    @property
    def kinds(self) -> Sequence[str]:
        """The values of `kind` in this exporter's lines, which must be unique."""
        ...

    def export_lines(self, scope: Scope, owner: Owner) -> AsyncIterator[ExportLine]:
        """Yield the owner's data within `scope` as JSON objects with a `kind`.

        Check each namespace with `scope.reaches`.
        """
        ...

    async def restore_line(self, scope: Scope, target: RestoreTarget, line: ExportLine) -> str:
        """Import a line. Return "new", "same" (already stored), or "other" (existing value kept).

        Validate each field, because the line may come from an untrusted file.

        Raises AgentMemoryError. RedisUnavailable, TooMany and ErasureUnderWay stop the import. Any
        other error skips the line.
        """
        ...


class RestoreTarget(Protocol):
    """Maps the owners in imported lines to their new owners."""

    @property
    def user_id(self) -> str:
        """The new owner, or "" for an agent's data or a whole store."""
        ...

    @property
    def source(self) -> str:
        """The name of the import."""
        ...

    def user(self, user_id: str | None, /) -> str | None:
        """Return the target's `user_id`, or the line's own user if there is none."""
        ...

    def agent(self, agent_id: str | None, /) -> str | None:
        """Return the new agent for an imported line."""
        ...

    def namespace(self, namespace: str | None, /) -> str | None:
        """Return the new namespace for an imported line."""
        ...

    def moved(self, namespace: str | None, /) -> bool:
        """True if data from this namespace is copied or gets a new owner or namespace."""
        ...


@runtime_checkable
class AgentExporter(Exporter, Protocol):
    """An exporter that also exports agents' data."""

    def export_agent(self, scope: Scope, owner: AgentOwner) -> AsyncIterator[ExportLine]:
        """Yield the agent's data within `scope` as lines for `restore_line`."""
        ...


@runtime_checkable
class UndoableExporter(Exporter, Protocol):
    """An exporter that can undo its imports."""

    async def undo_import(self, scope: Scope, owner: Owner | AgentOwner, source: str, *, dry_run: bool) -> Counter[str]:
        """Delete the import's data, unless it has since changed. Return counts by kind.

        `restore_line` must store `source`, the name of the import, with the data. With `dry_run`,
        only count the data.
        """
        ...


class SessionPart(Protocol):
    """The fields that a feature adds to a session's hash and export line.

    For an example, see `agent_memory/extensions/procedures/learning/results.py`.
    """

    @property
    def part(self) -> str:
        """The key for the feature's fields in a session's export line."""
        ...

    def export_part(self, fields: Mapping[bytes, bytes]) -> Any:
        """Return the feature's fields from a session's hash, or None if there are none."""
        ...

    def restore_part(self, scope: Scope, target: RestoreTarget, part: Any, messages: int) -> Mapping[str, str]:
        """Return the hash fields for an imported `part`. Raises BadInput or Forbidden.

        `messages` is the number of messages in the session.
        """
        ...

    async def resume_part(self, scope: Scope, session: SessionRef) -> None:
        """Schedule unfinished background work for an imported session. Idempotent."""
        ...


class Eraser(Protocol):
    """Deletes the data that a feature stores for a user, except sessions and memories.

    Also implement `SessionEraser` for data derived from sessions, and `AgentEraser` for agents'
    data. A worker repeats the calls until nothing is left to delete.
    """

    async def erase_owner(self, scope: Scope, owner: Owner) -> Counter[str]:
        """Delete the owner's data and return the number of deleted objects by kind."""
        ...


@runtime_checkable
class SessionEraser(Eraser, Protocol):
    """An eraser that also deletes data derived from sessions."""

    async def erase_session(self, scope: Scope, session: SessionRef) -> Counter[str]:
        """Delete data derived from a session and return the number of deleted objects by kind."""
        ...


@runtime_checkable
class AgentEraser(Eraser, Protocol):
    """An eraser that also deletes agents' data. Routes must check callers with `permit_agent`."""

    async def erase_agent(self, scope: Scope, owner: AgentOwner) -> Counter[str]:
        """Delete the agent's data and return the number of deleted objects by kind."""
        ...


class Purger(Protocol):
    """Deletes the data that a feature derived from purged memories.

    Use this only if the derived data does not record its source memories. Otherwise, use a
    `Follower`. Also called when an agent is erased or memories are forgotten. For an example, see
    `agent_memory/extensions/views/transfer.py`.
    """

    async def purge_groups(self, scope: Scope, groups: Collection[Group], *, dry_run: bool) -> Counter[str]:
        """Delete data that may be derived from memories in these groups. Return counts by kind.

        With `dry_run`, only count the objects.
        """
        ...


@runtime_checkable
class ForgetPurger(Purger, Protocol):
    """A purger with a separate, reversible method for requests to forget."""

    async def follow_forgetting(self, scope: Scope, groups: Collection[Group]) -> None:
        """Update data derived from memories in these groups, but keep what is needed to undo.

        Also called after an undo.
        """
        ...


@runtime_checkable
class DeletionPurger(Purger, Protocol):
    """A purger whose data must not outlive memories that a caller deletes."""

    async def follow_deletion(self, scope: Scope, groups: Collection[Group]) -> None:
        """Delete data possibly derived from memories in these groups. Idempotent.

        Called before and after the memories are deleted.
        """
        ...


class Follower(Protocol):
    """Updates derived data, such as a profile, when memories change.

    Workers call it after each change, and so do requests that edit or delete memories. For an
    example, see `agent_memory/extensions/profile/follower.py`.
    """

    async def follow_memories(self, mids: Sequence[str]) -> None:
        """Update data derived from these memories. If a memory was deleted, delete its data.

        This must be idempotent and must not depend on the order of calls. Use each memory's version
        to reject outdated writes. Store a key for each memory, so that you can find a deleted
        memory's data.
        """
        ...


class ExtractionGuide(Protocol):
    """Adds a feature's instructions to the prompt for fact extraction.

    For an example, see `agent_memory/extensions/profile/service.py`.
    """

    async def extraction_instructions(self, scope: Scope, namespace: str | None) -> Sequence[str]:
        """Return sentences to add to the prompts for sessions in this namespace."""
        ...


class Services:
    """One bucket's services, with one object per type.

    `services[Type]` returns the object of exactly that type, or raises KeyError.
    """

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
        """Register services. Raises ValueError if a type is already registered."""
        for service in services:
            if type(service) in self._by_type:
                raise ValueError(f"there are two of {type(service).__name__}")
            self._by_type[type(service)] = service

    def __getitem__(self, kind: type[T]) -> T:
        return self._by_type[kind]

    def open(self, feature: Feature, foundation: Any) -> None:
        """Open a feature and register its services."""
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
    """A job that one worker runs once per period for each bucket.

    The first run starts one period after the first worker starts. After an exception, the job runs
    again within five minutes.

    Call `ErasureGuard.require_none` before adding personal data, which must include the tenant and
    user id. A script that only replaces data can check the old value instead.
    """

    run: str
    """Import string of an async function that takes the runtime and returns a count."""
    minutes: Callable[[Settings], float | None]
    """Returns the minutes between runs, or None if the job is off."""


def while_enabled(minutes: float) -> Callable[[Settings], float | None]:
    """Return a `PeriodicJob.minutes` that disables the job if long-term memory is off."""
    return lambda settings: minutes if settings.longterm.enabled else None


@dataclass(frozen=True, slots=True)
class Feature:
    """Everything that one feature adds to the server. Only `name` is required.

    Import strings ("module:name") are loaded on demand. The names of features, jobs, Redis keys and
    MCP tools must be unique. For each class from `exporter` to `section`, `open` must register an
    object with `Services.add`.
    """

    name: str
    open: Callable[[Any, Services], None] = lambda _foundation, _services: None
    """Create the feature's services and add them.

    Takes the foundation and the services of earlier features. Called for each bucket at startup and when the embedding
    model changes. Raise StartupError to stop the process with a one-line message.
    """
    keys: Sequence[KeySpace] = ()
    """The Redis keys that the feature stores."""
    indexes: Callable[[Any, Any], Mapping[str, Any]] | None = None
    """Takes a bucket's keys and `VectorSpec`, and returns redisvl schemas by kind.

    Example: `agent_memory/extensions/items/search_index.py`.
    """
    routes: Sequence[str] = ()
    """Import strings of the routers that `operations` in `foundation/api/operation.py` creates."""
    examples: str | None = None
    """Import string of the routes' examples (`Example`) in the OpenAPI document.

    Example: `agent_memory/extensions/timeline/examples.py`.
    """
    jobs: Mapping[str, str] = field(default_factory=dict[str, str])
    """Maps a job's name to the import string of an async function `run(runtime, order)`.

    `OrderStore.place_orders` stores a `JobOrder`, and a worker runs it. The function must be idempotent.

    `order.arguments` contains the keyword arguments of `JobOrder.of` (strings or None). Pass a user as `user_id`, so
    that an erasure deletes the order. For the job's scope, pass `order.namespaces` and `order.users` to
    `scope_of_work`.

    A worker retries after an exception. After eight failures, the order becomes a dead letter. ErasureUnderWay,
    ModelUnavailable, RedisUnavailable and TooMany do not count as failures.
    """
    due_work: Mapping[DueKind, str] = field(default_factory=dict[DueKind, str])
    """Maps a kind to the import string of an async function.

    The function takes the runtime and the members of due marks. Other packages must use `jobs`.
    """
    schedule: Mapping[str, PeriodicJob] = field(default_factory=dict[str, PeriodicJob])
    """Maps a recurring job's name to the job."""
    background: Sequence[str] = ()
    """Import strings of async functions `run(runtime, stop)`, which each worker runs per bucket.

    A stopping worker sets `stop` and cancels the functions. A function that raises is restarted. For work that only one
    worker should do, use `jobs` or `schedule`.
    """
    embed_missing: str | None = None
    """Import string of an async function that embeds documents without a vector.

    The function takes a runtime and a limit, and returns the number of embedded documents.
    """
    exporter: type[Exporter] | None = None
    session_part: type[SessionPart] | None = None
    eraser: type[Eraser] | None = None
    purger: type[Purger] | None = None
    follower: type[Follower] | None = None
    """Updates derived data. Without a follower or purger, this data outlives its memories."""
    guide: type[ExtractionGuide] | None = None
    section: type[AnnouncedSection] | None = None
    """The feature's section of the memory prompt. See `core/prompt_sections.py`."""
    tools: Sequence[str] = ()
    """Import strings of the feature's `ToolSet` objects for MCP.

    Example: `agent_memory/extensions/timeline/tools.py`.
    """


def import_name(name: str) -> Any:
    """Return the object that an import string ("module:name") refers to."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


Job = Callable[[Any, Any], Awaitable[None]]
