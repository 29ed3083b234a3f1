"""HTTP routes to export and import the data of users and agents."""

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
FirstLineQuery = Annotated[int, Query(ge=1, le=2**53, description="In later parts, the number of the line after the header.")]
SourceQuery = Annotated[Identifier, Query(description="A name for the data source. A purge can select by it.")]

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
    """Returns all of a user's data as JSON Lines, from one namespace or all of them.

    The export contains everything acknowledged before the request, and no other user's data.

    The response is streamed. The last line, of kind `end`, contains the number of preceding lines.
    If it is missing, the export is incomplete. The X-Operation-Id header identifies the receipt.
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
    """Returns all of an agent's data as JSON Lines, from one namespace or all of them.

    The format is the same as for a user's export. The data includes the agent's sessions and their
    messages, and any user's memories, blocks and procedures with the agent's id.
    """
    operation_id, pieces = await services[ExportService].begin(scope, namespace, None, agent_id)
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
    """Imports lines from an agent's export and assigns them to this agent.

    Users keep their own data, and existing data does not change.

    If the agent id or namespace differs from the export's, the data is copied, as in a user's
    import. Sessions keep their ids, and an existing session stays with its agent.
    """
    return ModelResponse(await services[ImportService].run(scope, namespace, "", lines, first_line, import_source, agent_id))


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
    """Imports lines from an export and assigns them to this user.

    Ids, dates, versions and vectors are preserved, and existing data does not change.

    If the user or namespace differs from the export's, the data is copied: memories and changes get
    new ids, which are the same in every import.

    Send large files in parts, each with the header as its first line. Lines that cannot be imported
    are reported by number.
    """
    return ModelResponse(await services[ImportService].run(scope, namespace, user_id, lines, first_line, import_source))
