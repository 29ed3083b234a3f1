"""How a feature announces itself: once. `feature_list.py` collects the announcements."""

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
    """One kind of Redis key. Names of keys are digests, `<…>` says of what; all stand behind `<prefix>:{<bucket>}:`."""

    name: str
    type: str
    holds: str
    lifetime: str
    personal: bool = True
    """Whether it can hold what belongs to a user: then an erasure reaches it, and an export or the reason against one."""
    not_exported: str = ""
    """Why an export leaves it out, where it holds something personal."""


class Owner(NamedTuple):
    """A user of a tenant, in one namespace or (None) in all of them."""

    namespace: str | None
    user_id: str


class AgentOwner(NamedTuple):
    """An agent of a tenant, in one namespace or (None) in all of them: what has its name, alone or beside a user's."""

    namespace: str | None
    agent_id: str


class Group(NamedTuple):
    """Whose memories something was made of."""

    namespace: str | None
    user_id: str | None
    session_id: str | None
    memory_type: str


@dataclass(frozen=True, slots=True)
class Example:
    """What an operation of the API is sent: path and query `parameters`, and a body."""

    operation_id: str
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    body: Any = None


class Exporter(Protocol):
    """Writes a feature's part of a user's export, and reads it again."""

    @property
    def kinds(self) -> Sequence[str]:
        """The `kind` of each of its lines."""
        ...

    def export_lines(self, scope: Scope, owner: Owner) -> AsyncIterator[ExportLine]:
        """The lines of what the owner has, within the reach of `scope`."""
        ...

    async def restore_line(self, scope: Scope, target: RestoreTarget, line: ExportLine) -> str:
        """Brings a line in: "new", "same" (it is here already) or "other" (something else is). Raises AgentMemoryError for a bad one."""
        ...


class RestoreTarget(Protocol):
    """Whose the lines of an import become."""

    @property
    def user_id(self) -> str:
        """The user of an import that is a user's; "" of one that is an agent's."""
        ...

    def user(self, user_id: str | None, /) -> str | None:
        """The user to whom something of this one goes: in an agent's import it stays the one that it was."""
        ...

    def agent(self, agent_id: str | None, /) -> str | None:
        """The agent to whom something of this one goes."""
        ...

    def namespace(self, namespace: str | None, /) -> str | None:
        """The namespace that something of this one goes to."""
        ...

    def moved(self, namespace: str | None, /) -> bool:
        """Whether what stood in this namespace becomes another owner's."""
        ...


@runtime_checkable
class AgentExporter(Exporter, Protocol):
    """An exporter of something that agents have, too."""

    def export_agent(self, scope: Scope, owner: AgentOwner) -> AsyncIterator[ExportLine]:
        """The lines of what the agent has, within the reach of `scope`."""
        ...


class SessionPart(Protocol):
    """What a feature keeps in a session itself, as a part of the session's line in an export."""

    @property
    def part(self) -> str:
        """Its name in the line."""
        ...

    def export_part(self, fields: Mapping[bytes, bytes]) -> Any:
        """The part, from the fields of the session's hash; None where there is none."""
        ...

    def restore_part(self, scope: Scope, target: RestoreTarget, part: Any, messages: int) -> Mapping[str, str]:
        """The fields that a part becomes, in a session of so many messages. Raises BadInput, Forbidden."""
        ...

    async def resume_part(self, scope: Scope, session: SessionRef) -> None:
        """Orders what the part waited for, now that its session is here; done twice, it has the effect of once."""
        ...


class Eraser(Protocol):
    """Deletes what a feature keeps of a user, beside sessions and memories."""

    async def erase_owner(self, scope: Scope, owner: Owner) -> Counter[str]:
        """Deletes it; returns how much of what went."""
        ...


@runtime_checkable
class SessionEraser(Eraser, Protocol):
    """An eraser of something that is made of sessions, too."""

    async def erase_session(self, scope: Scope, session: SessionRef) -> Counter[str]:
        """Deletes what was made of a session that is erased; returns how much of what went."""
        ...


@runtime_checkable
class AgentEraser(Eraser, Protocol):
    """An eraser of something that agents have, too."""

    async def erase_agent(self, scope: Scope, owner: AgentOwner) -> Counter[str]:
        """Deletes what the agent has; returns how much of what went."""
        ...


class Purger(Protocol):
    """Deletes what a feature made of memories that are purged."""

    async def purge_groups(self, scope: Scope, groups: Collection[Group], *, dry_run: bool) -> Counter[str]:
        """Deletes, or only counts, what may have been made of memories of these groups."""
        ...


class Follower(Protocol):
    """Keeps what a feature derives of memories equal to what they are: its own shape of them (a profile)."""

    async def follow_memories(self, mids: Sequence[str]) -> None:
        """Brings what is derived of these memories (their names in keys) up to date from their current state; what is gone is taken out.

        Idempotent, in any order, and fenced by each memory's version: a worker may call it again with what it was called with before.
        """
        ...


class ExtractionGuide(Protocol):
    """Tells the model that takes facts what a feature would make of them, beside the rules of the tenant."""

    async def extraction_instructions(self, scope: Scope, namespace: str | None) -> Sequence[str]:
        """Sentences for the model, for sessions of this namespace; none where the feature asks for nothing."""
        ...


class ArchivedSummaries(Protocol):
    """Takes in summary views that the archived server left."""

    async def bring_in_view(self, scope: Scope, values: dict[str, Any], *, dry_run: bool) -> bool:
        """Whether the view is new here. Raises ValueError for one that cannot be taken."""
        ...

    async def bring_in_partition(self, scope: Scope, values: dict[str, Any], *, dry_run: bool) -> bool | None:
        """Whether the partition is new here, None when its view is not. Raises ValueError for one that cannot be taken."""
        ...


class Services:
    """What the features of one bucket opened, each found by its type."""

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
        """Raises ValueError for a second one of a type."""
        for service in services:
            if type(service) in self._by_type:
                raise ValueError(f"there are two of {type(service).__name__}")
            self._by_type[type(service)] = service

    def __getitem__(self, kind: type[T]) -> T:
        """Raises KeyError for what no feature opened."""
        return self._by_type[kind]

    def open(self, feature: Feature, foundation: Any) -> None:
        """Opens a feature and notes which of its services have a part in exports, erasures, purges, moves and prompts."""
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
    """Work that recurs, done once per period by all workers together."""

    run: str
    """As an import string: an async function of the runtime, which returns how much it did."""
    minutes: Callable[[Settings], float | None]
    """From one run to the next; None while it is switched off."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature. Modules that only some processes need are named as import strings ("module:name"): a worker loads no FastAPI."""

    name: str
    open: Callable[[Any, Services], None]
    """Makes its services of the foundation and of those that features before it in the list have opened."""
    keys: Sequence[KeySpace] = ()
    indexes: Callable[[Any, Any], Mapping[str, Any]] | None = None
    """Its search indexes by what they hold: schemas of redisvl, made of a bucket's keys and the vectors of its embedding model."""
    routes: Sequence[str] = ()
    """Routers of FastAPI."""
    examples: str | None = None
    """The examples of its routes in the API's document."""
    jobs: Mapping[str, str] = field(default_factory=dict[str, str])
    """Work that somebody can ask for, by its name in a stored job: async functions of the runtime and the job."""
    due_work: Mapping[DueKind, str] = field(default_factory=dict[DueKind, str])
    """What a worker does with due marks of a kind: async functions of the runtime and the marks' members, as import strings."""
    schedule: Mapping[str, PeriodicJob] = field(default_factory=dict[str, PeriodicJob])
    exporter: type[Exporter] | None = None
    session_part: type[SessionPart] | None = None
    eraser: type[Eraser] | None = None
    purger: type[Purger] | None = None
    archived: type[ArchivedSummaries] | None = None
    follower: type[Follower] | None = None
    guide: type[ExtractionGuide] | None = None
    section: type[AnnouncedSection] | None = None
    """Its part of the memory prompt. What a request says of it is an option in `agent_memory_client.models.features.prompt_options`."""
    tools: Sequence[str] = ()
    """Tools for models over MCP: each names a `ToolSet`."""


def import_name(name: str) -> Any:
    """What an import string ("module:name") names."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


Job = Callable[[Any, Any], Awaitable[None]]
