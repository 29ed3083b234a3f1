"""HTTP routes to purge a source, and to erase a user's or agent's data."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Path, Query, Response

from agent_memory.features.jobs.erasure_orders import Erasure, ErasureOrders
from agent_memory.features.jobs.operations import UNTOUCHED_SECONDS, OperationService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.privacy.purge import PurgeService
from agent_memory.foundation.api.dependencies import NamespaceQuery, ServicesDep, UserQuery, WaitQuery, WriteScopeDep
from agent_memory.foundation.api.operation import deleting, operations
from agent_memory.foundation.api.principals import place_of, whole_agent
from agent_memory.foundation.api.responses import ModelResponse, errors
from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.scope import Scope
from agent_memory_client.models import AckResponse, Identifier, PurgeRequest, PurgeResponse

router = operations("long-term memory")
persons = operations("operations")


@router.post("/v1/long-term-memory/purge", operation_id="purge_source", response_model=PurgeResponse, responses=errors(413, 415))
@deleting
async def purge_source(
    services: ServicesDep,
    scope: WriteScopeDep,
    body: Annotated[PurgeRequest, Body()],
    namespace: NamespaceQuery = None,
    user_id: UserQuery = None,
    dry_run: Annotated[bool, Query(description="Only return what would be deleted.")] = True,
    wait: WaitQuery = 10.0,
) -> Response:
    """Permanently deletes memories that come from a source, and memories derived only from them.

    Memories with other evidence lose only the source's evidence.

    The purge runs in a worker. The response is `pending` if no worker is running or if the purge
    takes longer than `wait`. The operation in X-Operation-Id stores the counts (`stages`) for 7
    days.
    """
    services[MemoryService].require()
    order = await services[PurgeService].order(scope, body, namespace, user_id, dry_run=dry_run)
    mark = services[PurgeService].mark(order)
    done = await services[OperationService].wait_for_marks(scope, [mark], wait, untouched=UNTOUCHED_SECONDS)
    answer = await services[PurgeService].outcome(order, done=done)
    return ModelResponse(answer, (b"x-operation-id", mark.operation_id.encode()))


@persons.delete("/v1/agents/{agent_id:path}", operation_id="delete_agent", response_model=AckResponse, responses=errors())
async def delete_agent(
    services: ServicesDep,
    scope: WriteScopeDep,
    agent_id: Annotated[Identifier, Path(description="The agent's id.")],
    namespace: NamespaceQuery = None,
    wait: WaitQuery = 0.0,
) -> Response:
    """Deletes all of an agent's data, in one namespace or in all of them.

    X-Operation-Id identifies the operation. The data includes the agent's sessions and their
    messages, and any user's memories, blocks and procedures with the agent's id.
    """
    erasure = Erasure(scope.tenant, whole_agent(scope, namespace, agent_id), None, None, agent_id)
    return await _erased(services, scope, erasure, wait)


@persons.delete("/v1/users/{user_id:path}", operation_id="delete_user", response_model=AckResponse, responses=errors())
async def delete_user(
    services: ServicesDep,
    scope: WriteScopeDep,
    user_id: Annotated[Identifier, Path(description="The user's id.")],
    namespace: NamespaceQuery = None,
    wait: WaitQuery = 0.0,
) -> Response:
    """Deletes all of a user's sessions and memories, in one namespace or in all of them.

    X-Operation-Id identifies the operation.
    """
    if scope.namespaces is not None:
        namespace, _ = place_of(scope, namespace, user_id)
    return await _erased(services, scope, Erasure(scope.tenant, namespace, user_id, None), wait)


async def _erased(services: Services, scope: Scope, erasure: Erasure, wait: float) -> Response:
    mark = await services[ErasureOrders].order_erasure(scope, erasure)
    done = await services[OperationService].wait_for_marks(scope, [mark], wait)
    return ModelResponse(AckResponse(status="ok" if done else "pending"), (b"x-operation-id", mark.operation_id.encode()))
