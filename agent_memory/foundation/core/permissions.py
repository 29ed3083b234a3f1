"""Check access to memories and sessions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from agent_memory.foundation.core.errors import Forbidden
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory_client.models import MemoryRecord


class Owned(Protocol):
    @property
    def namespace(self) -> str | None: ...
    @property
    def user_id(self) -> str | None: ...
    @property
    def agent_id(self) -> str | None: ...


def within(scope: Scope, record: Owned) -> bool:
    """True if the scope covers the memory. Both must belong to the same tenant."""
    if not scope.limited:
        return True
    return scope.reaches(record.namespace, record.user_id) and (scope.agents is None or record.agent_id in scope.agents)


def permit_writing(scope: Scope, records: Iterable[MemoryRecord] = (), *, field: str | None = None) -> None:
    """Raise Forbidden if the scope is read-only or does not cover all `records`.

    `field` is the request field that contains the records.
    """
    if not scope.may_write:
        raise Forbidden("these credentials are read-only: use credentials with the role write")
    for position, record in enumerate(records if scope.limited else ()):
        permit_owner(scope, record, None if field is None else f"{field}.{position}")


def permit_owner(scope: Scope, record: MemoryRecord, field: str | None = None) -> None:
    """Raise Forbidden if the scope does not cover the memory at the path `field`."""
    if not within(scope, record):
        name = denied_field(scope, record)
        raise access_denied(f"the {name} of a memory", name if field is None else f"{field}.{name}")


def access_denied(resource: str, field: str) -> Forbidden:
    """Return the error to raise for data that the credentials do not cover.

    `field` is the field that selects the data.
    """
    name = field.rpartition(".")[2]
    return Forbidden(f"these credentials do not give access to {resource}: use credentials that do, or another {name}", field=field)


def denied_field(scope: Scope, owner: object) -> str:
    """Return the name of the owner's first field that the scope does not cover."""
    limits = (("namespace", scope.namespaces), ("user_id", scope.users), ("agent_id", scope.agents))
    return next(name for name, limit in limits if limit is not None and getattr(owner, name, None) not in limit)


def reaches_session_of(scope: Scope, agent_id: str | None) -> bool:
    """True if the scope covers this agent's sessions. Always true if the agent is None."""
    return scope.agents is None or agent_id is None or agent_id in scope.agents


def permit_session(scope: Scope, ref: SessionRef, *, write: bool) -> None:
    """Raise Forbidden if the scope does not cover the session or does not allow the write."""
    if write:
        permit_writing(scope)
    if scope.limited and not scope.reaches(ref.namespace, ref.user_id):
        name = denied_field(scope, ref)
        raise access_denied(f"the {name} of this session", name)
