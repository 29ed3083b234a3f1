"""Create scopes for callers and background work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from agent_memory.foundation.core.errors import Forbidden, Unauthenticated
from agent_memory.foundation.core.permissions import access_denied, permit_writing
from agent_memory.foundation.core.prompt_sections import Reader
from agent_memory.foundation.core.scope import DEFAULT_TENANT, Principal, Rights, Role, Scope, SessionRef
from agent_memory.foundation.core.settings import Settings

PRINCIPAL = "agent_memory.principal"
"""Key in the ASGI scope for the request's `Principal`."""

# With AUTH_MODE=disabled, this is the caller of every request.
EVERYBODY = Principal(DEFAULT_TENANT, "anonymous", Role.ADMIN, operator=True)


def principal_of_request(settings: Settings, request: Mapping[str, Any] = MappingProxyType({})) -> Principal:
    """Return a request's caller. Raises Unauthenticated."""
    principal: Principal | None = request.get(PRINCIPAL)
    if principal is not None:
        return principal
    if settings.auth.required:
        raise Unauthenticated("send an API key or a token: Authorization: Bearer … or X-API-Key: …")
    return EVERYBODY


def scope_of_request(settings: Settings, request: Mapping[str, Any] = MappingProxyType({})) -> Scope:
    """Return the caller's scope. Raises Unauthenticated."""
    return scope_of(principal_of_request(settings, request))


@lru_cache(maxsize=4096)
def scope_of(principal: Principal) -> Scope:
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
    """Return the scope for background work. Pass only values that were stored with the work."""
    return Scope(tenant=tenant, namespaces=namespaces, users=users)


def scope_of_writer(tenant: str, rights: Rights) -> Scope:
    """Return the scope that a caller had when writing to a session."""
    return Scope(tenant=tenant, namespaces=rights.namespaces, users=rights.users, agents=rights.agents)


def writing(scope: Scope) -> Scope:
    """Return `scope`. Raises Forbidden if it is read-only."""
    permit_writing(scope)
    return scope


def administering(scope: Scope) -> Scope:
    """Return `scope`. Raises Forbidden if its caller is not an administrator."""
    if not scope.may_administer:
        raise Forbidden("these credentials do not have the role admin: use others")
    return scope


def within_namespace(scope: Scope, namespace: str) -> Scope:
    """Return the scope narrowed to one namespace. Raises Forbidden."""
    if scope.namespaces is not None and namespace not in scope.namespaces:
        raise access_denied("this namespace", "namespace")
    return replace(scope, namespaces=frozenset({namespace}))


def place_of(scope: Scope, namespace: str | None, user_id: str | None) -> tuple[str | None, str | None]:
    """Return the request's namespace and user.

    A missing value defaults to the only one the caller can access. Raises Forbidden if a value is
    ambiguous or not accessible.
    """
    namespace = resolve_name("namespace", scope.namespaces, namespace or None)
    user_id = resolve_name("user_id", scope.users, user_id or None)
    return namespace, user_id


def shared_place_of(scope: Scope, resources: str, namespace: str | None, user: str | None) -> tuple[str | None, str | None]:
    """Return the namespace and user for data that all agents share.

    `resources` is a plural noun for the data. Raises Forbidden, including if the caller is limited
    to certain agents.
    """
    if scope.agents is not None:
        raise Forbidden(f"{resources} are shared by all agents: use credentials that are not limited to certain agents")
    return place_of(scope, namespace, user)


def list_place_of(scope: Scope, namespace: str | None, user_id: str | None) -> tuple[str | None, str | None]:
    """Return the namespace and user for a list request. None means no filter.

    Raises Forbidden if the caller cannot access a value.
    """
    for name, limit, requested in (("namespace", scope.namespaces, namespace), ("user_id", scope.users, user_id)):
        if requested and limit is not None and requested not in limit:
            raise access_denied(f"this {name}", name)
    return namespace or None, user_id or None


def session_of(scope: Scope, session_id: str, namespace: str | None, user_id: str | None) -> SessionRef:
    """Return the request's session, with defaults from `place_of`. Raises Forbidden."""
    return SessionRef(session_id, *place_of(scope, namespace, user_id))


def reader_of(scope: Scope, namespace: str | None, user_id: str | None, agent_id: str | None = None) -> Reader:
    """Return the reader of a prompt that does not continue a session.

    A missing value defaults to the only one the caller can access. If a value is not accessible,
    return an empty reader.
    """
    names: list[str | None] = []
    for limit, requested in ((scope.namespaces, namespace), (scope.users, user_id), (scope.agents, agent_id)):
        if limit is None or requested in limit:
            names.append(requested or None)
        elif requested:
            return Reader()
        else:
            names.append(next(iter(limit)) if len(limit) == 1 else None)
    return Reader(*names)


def permit_agent(scope: Scope, agent_id: str | None) -> None:
    """Raise Forbidden if the scope does not cover this agent. None is always allowed."""
    if agent_id is not None and scope.agents is not None and agent_id not in scope.agents:
        raise access_denied("this agent_id", "agent_id")


def whole_agent(scope: Scope, namespace: str | None, agent_id: str) -> str | None:
    """Return the namespace for a request that covers all of an agent's data.

    None means all namespaces. Raises Forbidden, including if the caller is limited to certain
    users.
    """
    permit_agent(scope, agent_id)
    if scope.users is not None:
        raise Forbidden("an agent's data belongs to many users: use credentials that are not limited to certain users", field="agent_id")
    return namespace or None if scope.namespaces is None else place_of(scope, namespace, None)[0]


def resolve_name(name: str, limit: frozenset[str] | None, requested: str | None) -> str | None:
    """Return the requested value, or the only value in `limit`. Raises Forbidden."""
    if limit is None or requested in limit:
        return requested
    if requested is None and len(limit) == 1:
        return next(iter(limit))
    if requested is None:
        raise Forbidden(f"these credentials are limited to some values of {name}: send one of them", field=name)
    raise access_denied(f"this {name}", name)
