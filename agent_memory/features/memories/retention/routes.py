"""The route that deletes memories according to a policy."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Query, Response

from agent_memory.features.memories.retention.service import RetentionService, parse_policy
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.foundation.api.dependencies import NamespaceQuery, ServicesDep, UserQuery, WriteScopeDep
from agent_memory.foundation.api.operation import deleting, operations
from agent_memory.foundation.api.responses import ModelResponse, errors
from agent_memory_client.models import ForgetRequest, ForgetResponse, OptionalIdentifier

router = operations("long-term memory")


@router.post(
    "/v1/long-term-memory/forget",
    operation_id="forget_endpoint_v1_long_term_memory_forget_post",
    response_model=ForgetResponse,
    responses=errors(413, 415),
)
@deleting
async def forget(
    services: ServicesDep,
    scope: WriteScopeDep,
    body: Annotated[ForgetRequest, Body()],
    namespace: NamespaceQuery = None,
    user_id: UserQuery = None,
    session_id: Annotated[OptionalIdentifier, Query(description="The session of the memories.")] = None,
    limit: Annotated[int, Query(ge=0, le=1_000_000, description="How many may go in one call; more than 10,000 never do.")] = 1000,
    dry_run: Annotated[bool, Query(description="Only return what the request would delete.")] = True,
) -> Response:
    """Deletes memories that are too old, were not read for too long, or exceed a budget. Never deletes pinned memories.

    Evaluates all matching memories (`scanned`). Deletes at most `limit` of them, oldest first; call again for the rest.
    """
    policy, selection = parse_policy(body.policy), Selection.of(namespace, user_id, session_id)
    spared = frozenset(body.pinned_ids or ())
    forget_by_policy = services[RetentionService].forget_by_policy
    return ModelResponse(await forget_by_policy(scope, policy, selection, spared=spared, limit=limit, dry_run=dry_run))
