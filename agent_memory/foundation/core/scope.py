"""Define callers, their rights, and the work that a write is part of."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

DEFAULT_TENANT = "default"


class Role(StrEnum):
    """A caller's role. Each role includes the rights of the roles before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller and its rights in one tenant.

    If `namespaces`, `users`, or `agents` is None, all of them are allowed. `subject` identifies the
    caller in audit events. An `operator` may also create credentials for other tenants.
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
    """The data that a caller may access in one tenant.

    If `namespaces`, `users`, or `agents` is None, all of them are allowed. Never widen a scope.
    `actor` identifies the caller in audit events.
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
        """True if the scope does not cover the entire tenant."""
        return self.namespaces is not None or self.users is not None or self.agents is not None

    def reaches(self, namespace: str | None, user_id: str | None) -> bool:
        """True if the scope covers this user's data in this namespace.

        A scope limited to certain users never covers data that has no user.
        """
        return (self.namespaces is None or namespace in self.namespaces) and (self.users is None or user_id in self.users)


@dataclass(frozen=True, slots=True)
class SessionRef:
    """Identifies a session within a tenant."""

    session_id: str
    namespace: str | None = None
    user_id: str | None = None


class Rights(NamedTuple):
    """The data that a writer may access. None means all, as in `Scope`."""

    namespaces: frozenset[str] | None = None
    users: frozenset[str] | None = None
    agents: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """The work that a write is part of, and how it handles erasures.

    `since` is when the work started reading (in ms, from the Redis clock), or None if it uses no
    older data. If `waits` is true, the write waits until the erasure ends. `erases` marks the
    erasure itself.
    """

    since: int | None = None
    waits: bool = True
    erases: bool = False


_REQUEST = Work()
_work: ContextVar[Work | None] = ContextVar("work", default=None)


def current_work() -> Work:
    """Return the current work, which is an ordinary request by default."""
    return _work.get() or _REQUEST


@contextmanager
def carrying_out(work: Work) -> Generator[None]:
    """Make all writes inside this `with` block part of `work`."""
    token = _work.set(work)
    try:
        yield
    finally:
        _work.reset(token)
