"""The last look before a record leaves or enters the store: whether it is within its caller's reach. Queries have been narrowed before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from agent_memory.foundation.core.errors import Forbidden
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory_client.models import MemoryRecord


class Owned(Protocol):
    """What says whose it is."""

    @property
    def namespace(self) -> str | None: ...
    @property
    def user_id(self) -> str | None: ...
    @property
    def agent_id(self) -> str | None: ...


def within(scope: Scope, record: Owned) -> bool:
    """Whether a memory of the scope's tenant may be seen."""
    if not scope.limited:
        return True
    return scope.reaches(record.namespace, record.user_id) and (scope.agents is None or record.agent_id in scope.agents)


def permit_writing(scope: Scope, records: Iterable[MemoryRecord] = (), *, field: str | None = None) -> None:
    """Raises Forbidden when the caller may only read, or when one of the memories is out of reach; they stand in `field` of the request."""
    if not scope.may_write:
        raise Forbidden("these credentials may only read: use some with the role write")
    for position, record in enumerate(records if scope.limited else ()):
        permit_owner(scope, record, None if field is None else f"{field}.{position}")


def permit_owner(scope: Scope, record: MemoryRecord, field: str | None = None) -> None:
    """Raises Forbidden when a memory, which stands in `field` of the request, is out of reach."""
    if not within(scope, record):
        named = {} if field is None else {"field": f"{field}.{_beyond(scope, record)}"}
        raise Forbidden("these credentials do not reach the namespace, user or agent of a memory", **named)


def _beyond(scope: Scope, record: Owned) -> str:
    """Which of the names that say whose it is lies out of reach."""
    limits = (("namespace", scope.namespaces), ("user_id", scope.users), ("agent_id", scope.agents))
    return next(name for name, limit in limits if limit is not None and getattr(record, name) not in limit)


def reaches_session_of(scope: Scope, agent_id: str | None) -> bool:
    """Whether a session that names this agent may be seen; one that names none is of all agents that reach its namespace and user."""
    return scope.agents is None or agent_id is None or agent_id in scope.agents


def permit_session(scope: Scope, ref: SessionRef, *, write: bool) -> None:
    """Raises Forbidden when a session is out of reach, or is to be changed by a caller who may only read."""
    if write:
        permit_writing(scope)
    if scope.limited and not scope.reaches(ref.namespace, ref.user_id):
        raise Forbidden("these credentials do not reach the namespace or user of this session")
