"""HTTP operations for files."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request, Response

from agent_memory.extensions.files.media_types import SENT_TYPES
from agent_memory.extensions.files.service import FileService, NewFile
from agent_memory.foundation.api.body import RawBody, read_body
from agent_memory.foundation.api.dependencies import AgentOwnerQuery, OwnerQuery, ScopeDep, ServicesDep, WriteScopeDep
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.responses import JsonResponse, errors
from agent_memory.foundation.core.scope import SessionRef
from agent_memory_client import models
from agent_memory_client.models.features.files import FileList, FileName, StoredFile

router = operations("files")

FilePath = Annotated[models.SessionIdentifier, Path(description="The file's id, without `/`.")]
NameQuery = Annotated[FileName, Query(description="The file's name. Its extension sets the type if the request has none.")]
IdQuery = Annotated[models.SessionIdentifier | None, Query(description="Your own id. Default: derived from the name.")]
# Text comes last, because the documentation's examples use the last type.
_SENT: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {name: {"schema": {"type": "string", "format": "binary"}} for name in reversed(SENT_TYPES)},
    }
}


async def bytes_of(request: Request) -> RawBody:
    return RawBody(await read_body(request.scope, request.receive, None))


def type_of(request: Request) -> str:
    return request.headers.get("content-type", "")


@router.post(
    "/v1/files",
    operation_id="upload_file",
    response_model=StoredFile,
    responses=errors(409, 413, 415),
    openapi_extra=_SENT,
)
async def upload_file(
    services: ServicesDep,
    scope: WriteScopeDep,
    data: Annotated[RawBody, Depends(bytes_of)],
    media_type: Annotated[str, Depends(type_of)],
    name: NameQuery,
    names: AgentOwnerQuery,
    file_id: IdQuery = None,
) -> Response:
    """Uploads a text, Markdown, HTML, PDF or DOCX file. The request body is the file.

    A worker reads the file in the background. `operation_id` identifies this job. After that, the
    file's passages appear in searches and prompts. Uploading the same bytes again changes nothing.
    Uploading different bytes under the same name replaces the file's passages and facts.
    """
    upload = NewFile(name, data, media_type, names.namespace, names.user_id, names.agent_id, file_id)
    stored = await services[FileService].upload(scope, upload)
    headers = {} if stored.operation_id is None else {"x-operation-id": stored.operation_id}
    return JsonResponse(stored.model_dump(mode="json"), headers=headers)


@router.get("/v1/files", operation_id="list_files", response_model=FileList, responses=errors())
async def list_files(
    services: ServicesDep,
    scope: ScopeDep,
    names: OwnerQuery,
    limit: Annotated[int, Query(ge=1, le=100, description="The maximum number of files.")] = 20,
    offset: Annotated[int, Query(ge=0, le=100_000, description="The number of files to skip.")] = 0,
) -> Response:
    """Lists a user's files, or the files that have no user, newest first."""
    listed = await services[FileService].list_files(scope, names.namespace, names.user_id, offset, limit)
    return JsonResponse(listed.model_dump(mode="json"))


@router.get("/v1/files/{file_id}", operation_id="get_file", response_model=StoredFile, responses=errors(404))
async def get_file(services: ServicesDep, scope: ScopeDep, file_id: FilePath, names: OwnerQuery) -> Response:
    """Returns a file's state and counts, and the reason if the server could not read the file."""
    row = await services[FileService].load_file(scope, SessionRef(file_id, names.namespace, names.user_id))
    return JsonResponse(row.file and row.file.model_dump(mode="json"))


@router.delete("/v1/files/{file_id}", operation_id="delete_file", response_model=models.AckResponse, responses=errors(404, 409))
async def delete_file(services: ServicesDep, scope: WriteScopeDep, file_id: FilePath, names: OwnerQuery) -> Response:
    """Deletes a file, its passages, and any facts that came only from it."""
    await services[FileService].delete_file(scope, SessionRef(file_id, names.namespace, names.user_id))
    return JsonResponse({"status": "ok"})
