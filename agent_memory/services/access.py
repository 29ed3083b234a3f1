"""From who asks to what they may see. Only this file makes a `Scope`."""

from __future__ import annotations

from agent_memory.scope import DEFAULT_TENANT, Scope
from agent_memory.settings import Settings


def scope_of_request(settings: Settings) -> Scope:
    """The scope of a request. With `AUTH_MODE=disabled`, the only mode so far, everybody is the one tenant."""
    assert settings.auth.mode == "disabled"
    return Scope(tenant=DEFAULT_TENANT)


def scope_of_work(tenant: str, namespaces: frozenset[str] | None = None, users: frozenset[str] | None = None) -> Scope:
    """The scope of background work on a tenant's data; all come from the stored record or order that is worked on."""
    return Scope(tenant=tenant, namespaces=namespaces, users=users)
