"""The caller as types: `Principal` of credentials, `Scope` for every store method, `Work` for background work."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

DEFAULT_TENANT = "default"


class Role(StrEnum):
    """Each role includes the roles before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller: one tenant, and all (None) or some of its namespaces, users and agents.

    `subject` names the caller in audit events: a token's id or a JWT's subject. An `operator` also makes credentials
    for other tenants.
    """

    tenant: str
    subject: str
    role: Role = Role.READ
    namespaces: frozenset[str] | None = None
    users: frozenset[str] | None = None
    agents: frozenset[str] | None = None
    operator: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """The reach of a caller: one tenant, and all (None) or some of its namespaces, users and agents.

    Never widened after it was made. `actor` is for audit events.
    """

    tenant: str
    namespaces: frozenset[str] | None = None
    users: frozenset[str] | None = None
    may_write: bool = True
    agents: frozenset[str] | None = None
    may_administer: bool = False
    actor: str = ""

    def __post_init__(self) -> None:
        if not self.tenant:
            raise ValueError("a Scope without a tenant would see everybody's data")

    @property
    def limited(self) -> bool:
        """True if it is less than the whole tenant."""
        return self.namespaces is not None or self.users is not None or self.agents is not None

    def reaches(self, namespace: str | None, user_id: str | None) -> bool:
        """True if data of this namespace and user is within. Scopes limited to users never reach data without one."""
        return (self.namespaces is None or namespace in self.namespaces) and (self.users is None or user_id in self.users)


@dataclass(frozen=True, slots=True)
class SessionRef:
    """The identity of a session within a tenant."""

    session_id: str
    namespace: str | None = None
    user_id: str | None = None


class Rights(NamedTuple):
    """The reach of a writer, as in `Scope`."""

    namespaces: frozenset[str] | None = None
    users: frozenset[str] | None = None
    agents: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """The work that writes belong to.

    `since`: its start in ms (Redis' clock), if it uses older data. `waits`: its writes wait for the end of the owner's
    erasure. `erases`: it is the erasure.
    """

    since: int | None = None
    waits: bool = True
    erases: bool = False


_REQUEST = Work()
_work: ContextVar[Work | None] = ContextVar("work", default=None)


def current_work() -> Work:
    """Return the current work; a plain request by default."""
    return _work.get() or _REQUEST


@contextmanager
def carrying_out(work: Work) -> Generator[None]:
    """Assign all writes in this context to `work`."""
    token = _work.set(work)
    try:
        yield
    finally:
        _work.reset(token)
