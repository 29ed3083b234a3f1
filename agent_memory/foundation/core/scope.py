"""Who asks, as types: a `Principal` of credentials, and the `Scope` that `api/principals.py` makes of it for every store method; and for
what work it is asked (`Work`)."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

DEFAULT_TENANT = "default"


class Role(StrEnum):
    """What a caller may do; each may what stands before it, too."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: one tenant, and in it all (None) or some namespaces, users and agents.

    `subject` names the caller in audit events: a token's id or a JWT's subject, never the secret. An `operator` runs the server: an
    administrator who may also make credentials for other tenants.
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
    """What the caller may see: one tenant, and in it all or some namespaces, users and agents.

    `namespaces`, `users` and `agents` are None for "every one of the tenant". Never widened after it was made. `actor` is for audit events.
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
        """Whether this is less than the whole tenant."""
        return self.namespaces is not None or self.users is not None or self.agents is not None

    def reaches(self, namespace: str | None, user_id: str | None) -> bool:
        """Whether data of this namespace and user is within. Data without a user is in nobody's reach who is limited to users."""
        return (self.namespaces is None or namespace in self.namespaces) and (self.users is None or user_id in self.users)


@dataclass(frozen=True, slots=True)
class SessionRef:
    """The identity of a session within a tenant: (namespace, user_id, session_id)."""

    session_id: str
    namespace: str | None = None
    user_id: str | None = None


class Rights(NamedTuple):
    """What a writer could reach, as in a `Scope`: None stands for all of the tenant."""

    namespaces: frozenset[str] | None = None
    users: frozenset[str] | None = None
    agents: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """`since` is when it began (ms since 1970, by Redis' clock), if it takes data from before.

    `waits`: a write of it waits for the end of its owner's erasure; `erases`: it is the erasure.
    """

    since: int | None = None
    waits: bool = True
    erases: bool = False


_REQUEST = Work()
_work: ContextVar[Work | None] = ContextVar("work", default=None)


def current_work() -> Work:
    """What the caller carries out; a plain request unless somebody said otherwise."""
    return _work.get() or _REQUEST


@contextmanager
def carrying_out(work: Work) -> Generator[None]:
    """Within, all writes belong to `work`."""
    token = _work.set(work)
    try:
        yield
    finally:
        _work.reset(token)
