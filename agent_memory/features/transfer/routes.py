"""Export and import users and agents. Erasing is in `privacy/routes.py`."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request, Response

from agent_memory.features.transfer.export import ExportService
from agent_memory.features.transfer.imports import ImportService
from agent_memory.foundation.api.body import RawBody, read_body
from agent_memory.foundation.api.dependencies import NamespaceQuery, ScopeDep, ServicesDep, WriteScopeDep
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.responses import ModelResponse, PagedResponse, errors
from agent_memory_client.models import MEDIA_TYPE, Identifier, ImportReport

router = operations("users")
agents = operations("agents")

UserPath = Annotated[Identifier, Path(description="The user's id.")]
AgentPath = Annotated[Identifier, Path(description="The agent's id.")]
FirstLineQuery = Annotated[int, Query(ge=1, le=2**53, description="The number of the line after the header, in a later part.")]
SourceQuery = Annotated[Identifier, Query(description="A name for where it comes from, by which it can be purged.")]

_LINES: dict[str, Any] = {"type": "string", "description": "One JSON object per line."}
_EXPORTED = {"description": "The export.", "content": {MEDIA_TYPE: {"schema": _LINES}}}
_SENT = {"requestBody": {"required": True, "content": {MEDIA_TYPE: {"schema": _LINES}}}}


async def lines_of(request: Request) -> RawBody:
    return RawBody(await read_body(request.scope, request.receive, MEDIA_TYPE))


@router.post(
    "/v1/users/{user_id:path}/export",
    operation_id="export_user",
    response_class=Response,
    responses={**errors(), 200: _EXPORTED},
)
async def export_user(services: ServicesDep, scope: ScopeDep, user_id: UserPath, namespace: NamespaceQuery = None) -> Response:
    """Everything of a user, in one namespace or in all, as lines of JSON: what was acknowledged before is in it, others' data never.

    It is written while it is read. Its last line, of the kind `end`, counts those before it: without it the export is not whole.
    X-Operation-Id names the receipt.
    """
    operation_id, pieces = await services[ExportService].begin(scope, namespace, user_id)
    return PagedResponse(pieces, MEDIA_TYPE, {"x-operation-id": operation_id, "cache-control": "no-store"})


@agents.post(
    "/v1/agents/{agent_id:path}/export",
    operation_id="export_agent",
    response_class=Response,
    responses={**errors(), 200: _EXPORTED},
)
async def export_agent(services: ServicesDep, scope: ScopeDep, agent_id: AgentPath, namespace: NamespaceQuery = None) -> Response:
    """Everything of an agent, in one namespace or in all, as lines of JSON like those of a user's export.

    That is its sessions with what was said there, and the memories, blocks and procedures that bear its name, whoever's they are besides.
    """
    operation_id, pieces = await services[ExportService].begin_agent(scope, namespace, agent_id)
    return PagedResponse(pieces, MEDIA_TYPE, {"x-operation-id": operation_id, "cache-control": "no-store"})


@agents.post(
    "/v1/agents/{agent_id:path}/import",
    operation_id="import_agent",
    response_model=ImportReport,
    responses=errors(409, 413, 415),
    openapi_extra=_SENT,
)
async def import_agent(
    services: ServicesDep,
    scope: WriteScopeDep,
    agent_id: AgentPath,
    lines: Annotated[RawBody, Depends(lines_of)],
    namespace: NamespaceQuery = None,
    first_line: FirstLineQuery = 1,
    import_source: SourceQuery = "import",
) -> Response:
    """Brings in lines of an agent's export as this agent's; what was a user's stays that user's, and what is here stays as it is.

    Under another name, or with another namespace, it makes a copy, as the import of a user does. Sessions keep their ids: one that is
    here stays the agent's whose it is.
    """
    return ModelResponse(await services[ImportService].run_agent(scope, namespace, agent_id, lines, first_line, import_source))


@router.post(
    "/v1/users/{user_id:path}/import",
    operation_id="import_user",
    response_model=ImportReport,
    responses=errors(409, 413, 415),
    openapi_extra=_SENT,
)
async def import_user(
    services: ServicesDep,
    scope: WriteScopeDep,
    user_id: UserPath,
    lines: Annotated[RawBody, Depends(lines_of)],
    namespace: NamespaceQuery = None,
    first_line: FirstLineQuery = 1,
    import_source: SourceQuery = "import",
) -> Response:
    """Brings in lines of an export as this user's, with ids, dates, versions and vectors; what is here stays as it is.

    Of another user's export, or with another namespace, it makes a copy: memories and changes get ids of their own, each time the same.

    A large file is sent in parts, each with the header as its first line. Lines that cannot be taken are reported by number.
    """
    return ModelResponse(await services[ImportService].run(scope, namespace, user_id, lines, first_line, import_source))
