"""An extension that adds `GET /v1/last-session`, which returns a user's latest session id."""

from typing import Any

from fastapi import Response

from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.api.dependencies import NamespaceQuery, ScopeDep, ServicesDep, UserQuery
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.responses import JsonResponse, errors
from agent_memory.foundation.core.feature import Feature, Services

router = operations("last session")


@router.get("/v1/last-session", operation_id="get_last_session", responses=errors())
async def get_last_session(services: ServicesDep, scope: ScopeDep, user_id: UserQuery = None, namespace: NamespaceQuery = None) -> Response:
    """Return the id of the user's latest session that the caller can access, or null."""
    sessions = services[SessionService]
    total = (await sessions.list(scope, namespace=namespace, user_id=user_id, limit=1)).total
    page = await sessions.list(scope, namespace=namespace, user_id=user_id, limit=1, offset=max(total - 1, 0))
    return JsonResponse({"session_id": page.sessions[0] if page.sessions else None})


def open_last_session(foundation: Any, services: Services) -> None:
    """Do nothing. The route uses the existing session service."""


FEATURE = Feature(name="last session", open=open_last_session, routes=("last_session:router",))
