"""The route that merges repeats."""

from __future__ import annotations

from fastapi import Response

from agent_memory.features.jobs import operations as background
from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.memories.duplicates.service import DuplicateService
from agent_memory.features.memories.service import MemoryService
from agent_memory.foundation.api.dependencies import NamespaceQuery, ServicesDep, UserQuery, WriteScopeDep
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.responses import ModelResponse, errors
from agent_memory_client.models import AckResponse

router = operations("long-term memory")


@router.post(
    "/v1/long-term-memory/compact",
    operation_id="compact_long_term_memories_endpoint_v1_long_term_memory_compact_post",
    response_model=AckResponse,
    responses=errors(400),
)
async def compact(services: ServicesDep, scope: WriteScopeDep, namespace: NamespaceQuery = None, user_id: UserQuery = None) -> Response:
    """Merges memories that state the same thing. A worker does this, and the server answers when the work is done.

    After 20 seconds, or after 3 seconds if no worker has started, the server answers with `X-Pending: true`, and the
    work goes on. `X-Operation-Id` is the id of the operation.
    """
    services[MemoryService].require()
    mark = await services[DuplicateService].order_compaction(scope, namespace, user_id)
    done = await services[OperationService].wait_for_marks(
        scope, [mark], background.MAX_WAIT_SECONDS, untouched=background.UNTOUCHED_SECONDS
    )
    remaining = await services[DuplicateService].count_remaining(scope, namespace, user_id)
    headers = [(b"x-operation-id", mark.operation_id.encode()), (b"x-pending", b"false" if done else b"true")]
    return ModelResponse(AckResponse(status=f"ok, {remaining} memories remaining after compaction"), *headers)
