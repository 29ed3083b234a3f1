"""HTTP routes to change the embedding model, for operators only."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Depends, Path, Request, Response

from agent_memory.features.reembed.service import ReembedService, act_in_all, read_joined, start_in_all
from agent_memory.foundation.api.dependencies import caller_of, home_of
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.responses import ModelResponse, errors
from agent_memory.foundation.core.errors import Forbidden
from agent_memory.foundation.core.feature import Example
from agent_memory_client.models import ReembedAction, ReembedRequest, ReembedStatus

router = operations("operations")
EXAMPLES = (
    Example("get_reembedding"),
    Example("act_on_reembedding", {"action": "pause"}),
    Example("start_reembedding", body={"model": "use-multilingual-v3", "rate": 50, "dry_run": True}),
)


def services_of_operator(request: Request) -> list[ReembedService]:
    if not caller_of(request).operator:
        raise Forbidden("only operators may change the embedding model: use AUTH_ADMIN_TOKEN")
    home = home_of(request)
    return [bucket.services[ReembedService] for bucket in (home, *home.others)]


ReembedDep = Annotated[list[ReembedService], Depends(services_of_operator)]


@router.post("/v1/reembed", operation_id="start_reembedding", response_model=ReembedStatus, responses=errors(409, 413, 415))
async def start_reembedding(services: ReembedDep, body: Annotated[ReembedRequest, Body()]) -> Response:
    """Starts changing the embedding model. Operators only.

    Workers re-embed all memories with the new model. Searches switch to it once all memories have
    new vectors. The old vectors are kept until you confirm or roll back the change.
    """
    return ModelResponse(await start_in_all(services, body))


@router.get("/v1/reembed", operation_id="get_reembedding", response_model=ReembedStatus, responses=errors())
async def get_reembedding(services: ReembedDep) -> Response:
    """Returns the status of an embedding model change. Operators only."""
    return ModelResponse(await read_joined(services))


@router.post("/v1/reembed/{action}", operation_id="act_on_reembedding", response_model=ReembedStatus, responses=errors(409))
async def act_on_reembedding(
    services: ReembedDep, action: Annotated[ReembedAction, Path(description="`confirm` deletes the old vectors, `rollback` the new ones.")]
) -> Response:
    """Pauses, resumes, confirms, rolls back or aborts an embedding model change. Operators only."""
    return ModelResponse(await act_in_all(services, action))
