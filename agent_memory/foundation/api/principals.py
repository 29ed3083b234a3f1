"""From who asks, and from whose work is done, to what may be seen: each `Scope` is made here.

Background work has the scope that its stored record or order names. Nothing takes a limit out of a scope but the search for sessions, which
have no agent (`storage/search/filters.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from agent_memory.foundation.core.errors import Forbidden, Unauthenticated
from agent_memory.foundation.core.prompt_sections import Reader
from agent_memory.foundation.core.scope import DEFAULT_TENANT, Principal, Rights, Role, Scope, SessionRef
from agent_memory.foundation.core.settings import Settings

PRINCIPAL = "agent_memory.principal"
"""The name under which the `Principal` of a request stands in its ASGI scope: there alone, so that no two requests can share one."""

# With AUTH_MODE=disabled everybody may do everything with the one tenant's data.
EVERYBODY = Principal(DEFAULT_TENANT, "anonymous", Role.ADMIN, operator=True)


def principal_of_request(settings: Settings, request: Mapping[str, Any] = MappingProxyType({})) -> Principal:
    """Who asks in an ASGI request. Raises Unauthenticated when the settings ask for credentials and nobody has checked any."""
    principal: Principal | None = request.get(PRINCIPAL)
    if principal is not None:
        return principal
    if settings.auth.required:
        raise Unauthenticated("send an API key or a token: Authorization: Bearer … or X-API-Key: …")
    return EVERYBODY


def scope_of_request(settings: Settings, request: Mapping[str, Any] = MappingProxyType({})) -> Scope:
    """What the caller of an ASGI request may see. Raises Unauthenticated as `principal_of_request`."""
    return scope_of(principal_of_request(settings, request))


@lru_cache(maxsize=4096)
def scope_of(principal: Principal) -> Scope:
    """What a principal may see."""
    return Scope(
        tenant=principal.tenant,
        namespaces=principal.namespaces,
        users=principal.users,
        may_write=principal.role is not Role.READ,
        agents=principal.agents,
        may_administer=principal.role is Role.ADMIN,
        actor=principal.subject,
    )


def scope_of_work(tenant: str, namespaces: frozenset[str] | None = None, users: frozenset[str] | None = None) -> Scope:
    """The scope of background work on a tenant's data; all come from the stored record or order that is worked on."""
    return Scope(tenant=tenant, namespaces=namespaces, users=users)


def scope_of_writer(tenant: str, rights: Rights) -> Scope:
    """The scope in which a worker stores what a caller left with a session: the caller's, as of the write."""
    return Scope(tenant=tenant, namespaces=rights.namespaces, users=rights.users, agents=rights.agents)


def writing(scope: Scope) -> Scope:
    """The scope itself. Raises Forbidden when its caller may only read."""
    if not scope.may_write:
        raise Forbidden("these credentials may only read: use some with the role write")
    return scope


def administering(scope: Scope) -> Scope:
    """The scope itself. Raises Forbidden when its caller is no administrator."""
    if not scope.may_administer:
        raise Forbidden("this needs credentials with the role admin")
    return scope


def within_namespace(scope: Scope, namespace: str) -> Scope:
    """The scope, narrowed to one namespace. Raises Forbidden when that is out of its reach."""
    if scope.namespaces is not None and namespace not in scope.namespaces:
        raise Forbidden("these credentials do not reach this namespace", field="namespace")
    return replace(scope, namespaces=frozenset({namespace}))


def place_of(scope: Scope, namespace: str | None, user_id: str | None) -> tuple[str | None, str | None]:
    """The namespace and the user that a request means, for something that belongs to one of each (or to none).

    Who is limited to a single namespace or user means that one when the request names none. Raises Forbidden for what is out of reach.
    """
    namespace = _meant("namespace", scope.namespaces, namespace or None)
    user_id = _meant("user_id", scope.users, user_id or None)
    return namespace, user_id


def shared_place_of(scope: Scope, what: str, namespace: str | None, user: str | None) -> tuple[str | None, str | None]:
    """As `place_of`, for what all agents of a namespace and user share.

    Raises Forbidden also for callers who are limited to agents.
    """
    if scope.agents is not None:
        raise Forbidden(f"{what} are shared by all agents: use credentials that are not limited to some")
    return place_of(scope, namespace, user)


def list_place_of(scope: Scope, namespace: str | None, user_id: str | None) -> tuple[str | None, str | None]:
    """As `place_of`, for a choice among many: what the request does not name is not narrowed further than the scope is.

    Raises Forbidden for what is out of reach.
    """
    for name, limit, asked in (("namespace", scope.namespaces, namespace), ("user_id", scope.users, user_id)):
        if asked and limit is not None and asked not in limit:
            raise Forbidden(f"these credentials do not reach this {name}", field=name)
    return namespace or None, user_id or None


def session_of(scope: Scope, session_id: str, namespace: str | None, user_id: str | None) -> SessionRef:
    """The session that a request means; as `place_of`."""
    return SessionRef(session_id, *place_of(scope, namespace, user_id))


def reader_of(scope: Scope, namespace: str | None, user_id: str | None, agent_id: str | None = None) -> Reader:
    """Whom a prompt is for that continues no session: who is limited to a single namespace, user or agent is that one where the request
    names none, and nobody where the request names what is out of reach.
    """
    names: list[str | None] = []
    for limit, asked in ((scope.namespaces, namespace), (scope.users, user_id), (scope.agents, agent_id)):
        if limit is None or asked in limit:
            names.append(asked or None)
        elif asked:
            return Reader()
        else:
            names.append(next(iter(limit)) if len(limit) == 1 else None)
    return Reader(*names)


def permit_agent(scope: Scope, agent_id: str | None) -> None:
    """Raises Forbidden for an agent out of reach; None is nobody's agent."""
    if agent_id is not None and scope.agents is not None and agent_id not in scope.agents:
        raise Forbidden("these credentials do not reach this agent_id", field="agent_id")


def whole_agent(scope: Scope, namespace: str | None, agent_id: str) -> str | None:
    """The namespace that a request about all of an agent means, None for all of them.

    Raises Forbidden for an agent or namespace out of reach, and for who is limited to users: an agent's data are those of all its users.
    """
    permit_agent(scope, agent_id)
    if scope.users is not None:
        raise Forbidden("all of an agent is for who reaches all its users: these credentials are limited to some", field="agent_id")
    return namespace or None if scope.namespaces is None else place_of(scope, namespace, None)[0]


def _meant(name: str, limit: frozenset[str] | None, asked: str | None) -> str | None:
    if limit is None or asked in limit:
        return asked
    if asked is None and len(limit) == 1:
        return next(iter(limit))
    if asked is None:
        raise Forbidden(f"these credentials are limited: say which {name} is meant", field=name)
    raise Forbidden(f"these credentials do not reach this {name}", field=name)
