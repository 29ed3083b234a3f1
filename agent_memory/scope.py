"""Who asks, as a type: every store method takes a `Scope` first, and only `services/access.py` makes one."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_TENANT = "default"


@dataclass(frozen=True, slots=True)
class Scope:
    """What the caller may see: one tenant, and in it all or some namespaces and users.

    `namespaces` and `users` are None for "every one of the tenant". Never widened after it was made.
    """

    tenant: str
    namespaces: frozenset[str] | None = None
    users: frozenset[str] | None = None
    may_write: bool = True

    def __post_init__(self) -> None:
        if not self.tenant:
            raise ValueError("a Scope without a tenant would see everybody's data")


@dataclass(frozen=True, slots=True)
class SessionRef:
    """The identity of a session within a tenant: (namespace, user_id, session_id)."""

    session_id: str
    namespace: str | None = None
    user_id: str | None = None
