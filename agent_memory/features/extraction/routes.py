"""Routes for extraction rules."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Response

from agent_memory.features.extraction.rules import ExtractionRulesService
from agent_memory.foundation.api.dependencies import NamespaceQuery, ScopeDep, ServicesDep, UserQuery, WriteScopeDep
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.responses import ModelResponse, errors
from agent_memory_client.models import AckResponse, ExtractionRules

router = operations("extraction rules")


@router.get(
    "/v1/extraction-rules",
    operation_id="get_extraction_rules_v1_extraction_rules_get",
    response_model=ExtractionRules,
    responses=errors(),
)
async def get_extraction_rules(
    services: ServicesDep, scope: ScopeDep, namespace: NamespaceQuery = None, user_id: UserQuery = None
) -> Response:
    """Returns the rules for exactly this namespace and user or, if neither is given, for everyone.

    The response is empty if there are no rules.
    """
    return ModelResponse(await services[ExtractionRulesService].get(scope, namespace, user_id))


@router.put(
    "/v1/extraction-rules",
    operation_id="put_extraction_rules_v1_extraction_rules_put",
    response_model=ExtractionRules,
    responses=errors(409, 413, 415),
)
async def put_extraction_rules(
    services: ServicesDep,
    scope: WriteScopeDep,
    body: Annotated[ExtractionRules, Body()],
    namespace: NamespaceQuery = None,
    user_id: UserQuery = None,
) -> Response:
    """Replaces the rules for a namespace, a user, a user in a namespace, or everyone.

    Narrower rules are added to wider ones.
    """
    return ModelResponse(await services[ExtractionRulesService].put(scope, namespace, user_id, body))


@router.delete(
    "/v1/extraction-rules",
    operation_id="delete_extraction_rules_v1_extraction_rules_delete",
    response_model=AckResponse,
    responses=errors(),
)
async def delete_extraction_rules(
    services: ServicesDep, scope: WriteScopeDep, namespace: NamespaceQuery = None, user_id: UserQuery = None
) -> Response:
    """Deletes the rules for exactly the given namespace and user. Succeeds even if there are no rules."""
    return ModelResponse(await services[ExtractionRulesService].delete(scope, namespace, user_id))
