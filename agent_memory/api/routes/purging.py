"""Purging memories by their source."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Query, Response

from agent_memory.api.answers import ModelResponse, errors
from agent_memory.api.deps import NamespaceQuery, RuntimeDep, UserQuery, WaitQuery, WriteScopeDep
from agent_memory.api.operation import deleting, operations
from agent_memory.services.operations import UNTOUCHED_SECONDS
from agent_memory_client.models import PurgeRequest, PurgeResponse

router = operations("long-term memory")


@router.post("/v1/long-term-memory/purge", operation_id="purge_source", response_model=PurgeResponse, responses=errors(413, 415))
@deleting
async def purge_source(
    runtime: RuntimeDep,
    scope: WriteScopeDep,
    body: Annotated[PurgeRequest, Body()],
    namespace: NamespaceQuery = None,
    user_id: UserQuery = None,
    dry_run: Annotated[bool, Query(description="Only say what would go.")] = True,
    wait: WaitQuery = 10.0,
) -> Response:
    """Deletes for good what comes from a source, and what was made of nothing else; what rests on other evidence, too, loses this.

    A worker does it; without one, or when it takes longer than `wait`, the answer is `pending`. The operation that X-Operation-Id names
    keeps the counts as its receipt (`stages`), for 7 days.
    """
    runtime.longterm.require()
    order = await runtime.purging.order(scope, body, namespace, user_id, dry_run=dry_run)
    mark = runtime.purging.mark(order)
    done = await runtime.operations.wait(scope, [mark], wait, untouched=UNTOUCHED_SECONDS)
    answer = await runtime.purging.outcome(order, done=done)
    return ModelResponse(answer, (b"x-operation-id", mark.operation_id.encode()))
