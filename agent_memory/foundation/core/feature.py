"""Define `Feature`: everything that a feature adds to the server. `feature_list.py` collects the features.

`examples/extension/nickname.py` is a complete example from another package, and docs/extending.md explains this
example. A "bucket" is a group of tenants. The server creates each feature's objects once per bucket.
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
    """A description of one kind of Redis key, for the table that `scripts/reference/key_table.py` prints.

    `name` omits `<prefix>:{<bucket>}:`. Each `<…>` represents a value's digest. The server does not start if two features
    describe keys with the same name.
    """

    name: str
    type: str
    """The Redis type, such as "hash"."""
    holds: str
    """The key's content, in words."""
    lifetime: str
    """When the key is deleted, in words."""
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
    """The owner and type of memories from which a feature derived data."""

    namespace: str | None
    user_id: str | None
    session_id: str | None
    memory_type: str


@dataclass(frozen=True, slots=True)
class Example:
    """An example request: the operation's id, the path and query `parameters`, and the body."""

    operation_id: str
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    body: Any = None


class Exporter(Protocol):
    """An interface for exporting and importing the data that a feature stores for a user.

    To export agents' data, also implement `AgentExporter`. To let users undo an import, also implement
    `UndoableExporter`.
    """

    @property
    def kinds(self) -> Sequence[str]:
        """The values of `kind` in this exporter's lines. No other exporter is allowed to use these values."""
        ...

    def export_lines(self, scope: Scope, owner: Owner) -> AsyncIterator[ExportLine]:
        """Yield the owner's data within `scope` as export lines.

        A line is a JSON object that contains at least `kind`. Check each namespace with `scope.reaches`.
        """
        ...

    async def restore_line(self, scope: Scope, target: RestoreTarget, line: ExportLine) -> str:
        """Import a line. Return "new", "same" (already stored), or "other" (kept a different stored value).

        The import request calls this method for each line whose `kind` is in `kinds`. The line may come from an
        untrusted file, so check each field.

        Raises AgentMemoryError. RedisUnavailable, TooMany and ErasureUnderWay end the import. For any other
        AgentMemoryError, such as BadInput, the import skips the line and reports the problem.
        """
        ...


class RestoreTarget(Protocol):
    """The new owner of imported lines. Translate the names in each line with `user`, `agent` and `namespace`."""

    @property
    def user_id(self) -> str:
        """The user who will own the imported data; "" if an agent's data or a whole store is imported."""
        ...

    @property
    def source(self) -> str:
        """The name of the import."""
        ...

    def user(self, user_id: str | None, /) -> str | None:
        """Return the owner of an imported line in this store: the target's `user_id`, or else the line's own user."""
        ...

    def agent(self, agent_id: str | None, /) -> str | None:
        """Return the agent that an imported line belongs to in this store."""
        ...

    def namespace(self, namespace: str | None, /) -> str | None:
        """Return the namespace that an imported line belongs to in this store."""
        ...

    def moved(self, namespace: str | None, /) -> bool:
        """True if data from this namespace becomes a copy or gets a different owner or namespace."""
        ...


@runtime_checkable
class AgentExporter(Exporter, Protocol):
    """An exporter that can also export an agent's data."""

    def export_agent(self, scope: Scope, owner: AgentOwner) -> AsyncIterator[ExportLine]:
        """Yield the agent's data within `scope` as export lines. `restore_line` also imports these lines."""
        ...


@runtime_checkable
class UndoableExporter(Exporter, Protocol):
    """An exporter that can also undo what it imported."""

    async def undo_import(self, scope: Scope, owner: Owner | AgentOwner, source: str, *, dry_run: bool) -> Counter[str]:
        """Delete the owner's data that the import `source` stored, unless the data has changed since then.

        `source` is the name in the import's `RestoreTarget`, so `restore_line` must store this name with the data. With
        `dry_run`, only count the data. Return the number of objects by kind.
        """
        ...


class SessionPart(Protocol):
    """A feature's own fields in a session's hash. Exports include these fields in the session's export line.

    `agent_memory/extensions/procedures/learning/results.py` is an example.
    """

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
    """An interface for deleting the data that a feature stores for a user. Other code deletes sessions and memories.

    For data derived from sessions, also implement `SessionEraser`. For agents' data, also implement `AgentEraser`. A
    worker calls the methods in rounds until a round deletes nothing. If a method raises an exception, a worker repeats
    the erasure later. After eight failures, the erasure becomes a dead letter.
    """

    async def erase_owner(self, scope: Scope, owner: Owner) -> Counter[str]:
        """Delete the owner's data. Return the number of deleted objects by kind, for the erasure's receipt."""
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
    """An eraser that can also delete an agent's data. Routes for such data check the caller with `permit_agent`."""

    async def erase_agent(self, scope: Scope, owner: AgentOwner) -> Counter[str]:
        """Delete the agent's data. Return the number of deleted objects by kind."""
        ...


class Purger(Protocol):
    """An interface for deleting the data that a feature derived from purged memories.

    A feature needs a purger only if its derived data, such as a summary, does not record the source memories.
    Otherwise, a `Follower` is enough. The server calls the purger when it purges a source, erases an agent or forgets
    memories. `agent_memory/extensions/views/transfer.py` is an example.
    """

    async def purge_groups(self, scope: Scope, groups: Collection[Group], *, dry_run: bool) -> Counter[str]:
        """Delete data that the feature may have derived from memories in these groups. With `dry_run`, only count it.

        Return the number of objects by kind.
        """
        ...


@runtime_checkable
class ForgetPurger(Purger, Protocol):
    """A purger with a separate method for requests to forget, because callers can undo such requests."""

    async def follow_forgetting(self, scope: Scope, groups: Collection[Group]) -> None:
        """Update data derived from memories in these groups, but keep what an undo needs. Also called after an undo."""
        ...


class Follower(Protocol):
    """An interface for updating data that a feature derives from memories, such as a profile, when the memories change.

    A worker calls the follower after each change. When a caller edits or deletes memories, the request also calls the
    follower before the response. `agent_memory/extensions/profile/follower.py` is an example.
    """

    async def follow_memories(self, mids: Sequence[str]) -> None:
        """Update the data derived from these memories, and delete the data derived from deleted memories.

        To find a deleted memory's data, profiles store a key for each memory (`pfo:<mid>`) that points to the data.
        Implementations must be idempotent and must not depend on the order of calls, because workers may repeat a call.
        Use each memory's version to reject outdated writes.
        """
        ...


class ExtractionGuide(Protocol):
    """An interface for adding a feature's instructions to the fact extraction prompt.

    `agent_memory/extensions/profile/service.py` is an example.
    """

    async def extraction_instructions(self, scope: Scope, namespace: str | None) -> Sequence[str]:
        """Return sentences to add to the prompts for sessions in this namespace."""
        ...


class Services:
    """The services of one bucket: one object per type, such as a feature's store.

    `services[Type]` returns the object of exactly this type, or raises KeyError. Routes receive `services` as an
    argument. Jobs and background functions receive a runtime, and `runtime[Type]` returns the same object.
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
    """Recurring work that one worker does once per period for each bucket.

    The first run starts one period after the first worker. After an exception, the job runs again within five minutes.

    Before a job adds personal data, the job must call `ErasureGuard.require_none`. The job therefore needs the tenant
    and the user id, which Redis keys do not reveal. Store both with the data. A job that only replaces existing data
    can instead use a script that checks the old value, because an erasure deletes this value.
    """

    run: str
    """Import string of an async function that takes the runtime and returns a count. The worker logs this count."""
    minutes: Callable[[Settings], float | None]
    """A function that takes the settings and returns the minutes between two runs, or None if the job is off."""


def while_enabled(minutes: float) -> Callable[[Settings], float | None]:
    """Return a `PeriodicJob.minutes` function for a job that runs only while long-term memory is on."""
    return lambda settings: minutes if settings.longterm.enabled else None


@dataclass(frozen=True, slots=True)
class Feature:
    """Everything that one feature adds to the server. All fields except `name` are optional.

    Import strings ("module:name") refer to modules that only some processes need. The server loads these modules on
    demand.

    The names of features, jobs, recurring jobs, Redis keys and MCP tools must be unique. Otherwise, the server does not
    start. The fields from `exporter` to `section` contain classes. For each of these classes, `open` must add an object
    with `Services.add`.
    """

    name: str
    open: Callable[[Any, Services], None] = lambda _foundation, _services: None
    """Create the feature's services and add them. Takes the foundation (`foundation/foundation.py`) and the services of
    earlier features. Features from other packages open after the extensions and interfaces in this repository.

    The process calls this function for each bucket when it starts, and again after the embedding model has changed.
    Raise StartupError to stop the process with a one-line message, for example if a setting is invalid.
    """
    keys: Sequence[KeySpace] = ()
    """The Redis keys that the feature stores."""
    indexes: Callable[[Any, Any], Mapping[str, Any]] | None = None
    """A function that takes a bucket's keys and `VectorSpec`, and returns redisvl schemas by kind.

    `agent_memory/extensions/items/search_index.py` is an example.
    """
    routes: Sequence[str] = ()
    """Import strings of the routers that `operations` in `foundation/api/operation.py` creates."""
    examples: str | None = None
    """Import string of the examples (`Example`) for the feature's routes in the OpenAPI document.

    `agent_memory/extensions/timeline/examples.py` is an example.
    """
    jobs: Mapping[str, str] = field(default_factory=dict[str, str])
    """Maps a job's name to the import string of an async function `run(runtime, order)`.

    `OrderStore.place_orders` stores a `JobOrder` with the job's name, and a worker then calls the function. A worker can
    call the function again for the same order, so make the function idempotent.

    `order.arguments` contains the keyword arguments of `JobOrder.of`, which must be strings or None. Pass a user as
    `user_id`: an erasure of this user then deletes the order. `order.namespaces` and `order.users` contain the caller's
    restrictions, or None. Pass both to `scope_of_work` to get the job's scope.

    After an exception, a worker runs the order again later. After eight failures, the order becomes a dead letter. Some
    exceptions do not count as failures: ErasureUnderWay, ModelUnavailable, RedisUnavailable and TooMany. If no worker
    has the job's feature, the order waits for such a worker.
    """
    due_work: Mapping[DueKind, str] = field(default_factory=dict[DueKind, str])
    """Maps a kind to the import string of an async function that takes the runtime and the members of due marks.

    Only features in this repository can use this field, because `DueKind` lists all kinds. Other packages use `jobs`.
    """
    schedule: Mapping[str, PeriodicJob] = field(default_factory=dict[str, PeriodicJob])
    """Maps a recurring job's name to the job."""
    background: Sequence[str] = ()
    """Import strings of async functions `run(runtime, stop)`. Each worker runs each function once per bucket. `stop` is
    an event that is set when the worker stops. A stopping worker cancels the functions. After an exception, a function
    starts again. For work that only one worker should do, use `jobs` or `schedule`.
    """
    embed_missing: str | None = None
    """Import string of an async function that takes a runtime and a limit. It embeds up to this many of the feature's
    documents that have no vector of the runtime's model, and returns their number."""
    exporter: type[Exporter] | None = None
    session_part: type[SessionPart] | None = None
    eraser: type[Eraser] | None = None
    purger: type[Purger] | None = None
    follower: type[Follower] | None = None
    """The class that updates derived data. Without a follower or purger, this data outlives its memories."""
    guide: type[ExtractionGuide] | None = None
    section: type[AnnouncedSection] | None = None
    """The feature's section of the memory prompt. `core/prompt_sections.py` describes sections.

    `agent_memory_client.models.features.prompt_options` defines the request options for sections in this repository.
    """
    tools: Sequence[str] = ()
    """Import strings of the feature's MCP tools. Each import string refers to a `ToolSet`.

    `agent_memory/extensions/timeline/tools.py` is an example.
    """


def import_name(name: str) -> Any:
    """Import and return the object that an import string ("module:name") refers to."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


Job = Callable[[Any, Any], Awaitable[None]]
