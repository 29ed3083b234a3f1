"""HTTP routes for working memory: sessions, their messages and their data."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Query, Response

from agent_memory.features.jobs.erasure_orders import Erasure, ErasureOrders
from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.memories.memory_types import MemoryTypesHeader, knows_procedural, names_procedural, session_as_shown
from agent_memory.features.memories.records import message_memory_id
from agent_memory.features.sessions.pictures import mark_pictures
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.api.dependencies import (
    IfMatch,
    IfNoneMatch,
    MessageWaitQuery,
    ModelQuery,
    NamespaceQuery,
    ScopeDep,
    ServicesDep,
    SessionPath,
    UserQuery,
    WaitQuery,
    WindowQuery,
    WriteScopeDep,
    required_version,
    version_of,
)
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.principals import place_of, session_of
from agent_memory.foundation.api.responses import ModelResponse, errors, etag, versioned
from agent_memory_client.models import (
    AckResponse,
    AppendMessagesRequest,
    AppendMessagesResponse,
    MessageStage,
    SessionListResponse,
    UpdateDataRequest,
    UpdateWorkingMemory,
    WorkingMemoryResponse,
)

MAX_RECENT = 2**31 - 1
MAX_LIST_OFFSET = 1_000_000

_TIMESTAMPS_MISSING = (
    b"x-deprecation-warning",
    b"Messages without created_at are deprecated: its order and age depend on it, and a server may say that it is required "
    b"(REQUIRE_MESSAGE_TIMESTAMPS). Send created_at with every message.",
)

router = operations("working memory")


@router.get(
    "/v1/working-memory/",
    operation_id="list_sessions_v1_working_memory__get",
    response_model=SessionListResponse,
    responses=errors(),
)
async def list_sessions(
    services: ServicesDep,
    scope: ScopeDep,
    limit: Annotated[int, Query(ge=1, le=100, description="The maximum number of sessions.")] = 20,
    offset: Annotated[int, Query(ge=0, le=MAX_LIST_OFFSET, description="The number of sessions to skip.")] = 0,
    namespace: NamespaceQuery = None,
    user_id: UserQuery = None,
    identities: Annotated[bool, Query(description="Also return the owner of each session.")] = False,
) -> Response:
    """Lists session ids. `total` is the number of matching sessions."""
    return ModelResponse(
        await services[SessionService].list(scope, namespace=namespace, user_id=user_id, limit=limit, offset=offset, identities=identities)
    )


@router.post(
    "/v1/working-memory/{session_id:path}/messages",
    operation_id="append_messages_v1_working_memory__session_id__messages_post",
    response_model=AppendMessagesResponse,
    responses=versioned(400, 409, 412, 413, 415),
)
async def append_messages(
    services: ServicesDep,
    scope: WriteScopeDep,
    session_id: SessionPath,
    body: Annotated[AppendMessagesRequest, Body()],
    wait: MessageWaitQuery = None,
    if_match: IfMatch = None,
) -> Response:
    """Appends messages to a session, and creates the session if necessary.

    Messages that are already stored are skipped.
    """
    answer, messages = await services[SessionService].append_messages(scope, session_id, body, if_match=version_of(if_match))
    if wait is not None:
        reached: MessageStage = "stored"
        if services[SessionService].promotes:
            ref = session_of(scope, session_id, body.namespace, body.user_id)
            ids = [message_memory_id(ref, message.id) for message in messages]
            reached = await services[OperationService].wait_for_messages(scope, ref, ids, wait.stage, wait.seconds)
        answer = answer.model_copy(update={"reached": reached})
    return ModelResponse(answer, etag(answer.version))


@router.patch(
    "/v1/working-memory/{session_id:path}/data",
    operation_id="update_data_v1_working_memory__session_id__data_patch",
    response_model=WorkingMemoryResponse,
    responses=versioned(400, 404, 409, 412, 413, 415),
)
async def update_data(
    services: ServicesDep,
    scope: WriteScopeDep,
    session_id: SessionPath,
    body: Annotated[UpdateDataRequest, Body()],
    namespace: NamespaceQuery = None,
    user_id: UserQuery = None,
    if_match: IfMatch = None,
    memory_types: MemoryTypesHeader = None,
) -> Response:
    """Sets keys in a session's `data`. A null value removes the key. Other keys do not change."""
    answer = await services[SessionService].patch_data(
        scope,
        session_id,
        body.data,
        namespace=body.namespace or namespace,
        user_id=body.user_id or user_id,
        if_match=version_of(if_match),
    )
    return ModelResponse(session_as_shown(answer.session, shows=knows_procedural(memory_types)), etag(answer.version))


@router.get(
    "/v1/working-memory/{session_id:path}",
    operation_id="get_working_memory_v1_working_memory__session_id__get",
    response_model=WorkingMemoryResponse,
    responses=versioned(404),
)
async def get_working_memory(
    services: ServicesDep,
    scope: ScopeDep,
    session_id: SessionPath,
    user_id: UserQuery = None,
    namespace: NamespaceQuery = None,
    model_name: ModelQuery = None,
    context_window_max: WindowQuery = None,
    recent_messages_limit: Annotated[
        int | None, Query(ge=-MAX_RECENT, le=MAX_RECENT, description="Return only the last N messages. 0 or less: no limit.")
    ] = None,
    memory_types: MemoryTypesHeader = None,
) -> Response:
    """Returns a session.

    If a model or context window is specified, the oldest messages that do not fit are omitted.
    """
    answer = await services[SessionService].get(
        scope,
        session_id,
        namespace=namespace,
        user_id=user_id,
        recent_messages_limit=recent_messages_limit if recent_messages_limit and recent_messages_limit > 0 else None,
        model_name=model_name,
        context_window_max=context_window_max or None,
    )
    await mark_pictures(services, scope, answer.session)
    return ModelResponse(session_as_shown(answer.session, shows=knows_procedural(memory_types)), etag(answer.version))


@router.put(
    "/v1/working-memory/{session_id:path}",
    operation_id="put_working_memory_v1_working_memory__session_id__put",
    response_model=WorkingMemoryResponse,
    responses=versioned(400, 409, 412, 413, 415, headers={"X-Deprecation-Warning": "Present when a message came without `created_at`."}),
)
async def put_working_memory(
    services: ServicesDep,
    scope: WriteScopeDep,
    session_id: SessionPath,
    body: Annotated[UpdateWorkingMemory, Body()],
    user_id: UserQuery = None,
    namespace: NamespaceQuery = None,
    model_name: ModelQuery = None,
    context_window_max: WindowQuery = None,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
    memory_types: MemoryTypesHeader = None,
) -> Response:
    """Stores a session, replacing any existing one.

    The `user_id` and `namespace` query parameters apply if the body omits them.
    """
    shows = knows_procedural(memory_types) or names_procedural(memory.memory_type for memory in body.memories)
    answer = await services[SessionService].put(
        scope,
        session_id,
        body,
        user_id=user_id,
        namespace=namespace,
        model_name=model_name,
        context_window_max=context_window_max or None,
        if_match=required_version(if_match, if_none_match),
        shown_as_semantic=not shows,
    )
    await mark_pictures(services, scope, answer.session)
    session = session_as_shown(answer.session, shows=shows)
    if answer.missing_timestamps:
        return ModelResponse(session, etag(answer.version), _TIMESTAMPS_MISSING)
    return ModelResponse(session, etag(answer.version))


@router.delete(
    "/v1/working-memory/{session_id:path}",
    operation_id="delete_working_memory_v1_working_memory__session_id__delete",
    response_model=AckResponse,
    responses=errors(),
)
async def delete_working_memory(
    services: ServicesDep,
    scope: WriteScopeDep,
    session_id: SessionPath,
    user_id: UserQuery = None,
    namespace: NamespaceQuery = None,
    memories: Annotated[bool, Query(description="Also delete the long-term memories that came from the session.")] = False,
    wait: WaitQuery = 0.0,
) -> Response:
    """Deletes a session if it exists. Its long-term memories are kept unless `memories` is true."""
    if not memories:
        return ModelResponse(await services[SessionService].delete(scope, session_id, namespace=namespace, user_id=user_id))
    erasure = Erasure(scope.tenant, *place_of(scope, namespace, user_id), session_id)
    # Order the erasure first: a session that is written again after the deletion must stay.
    mark = await services[ErasureOrders].order_erasure(scope, erasure)
    answer = await services[SessionService].delete(scope, session_id, namespace=namespace, user_id=user_id)
    done = wait <= 0 or await services[OperationService].wait_for_marks(scope, [mark], wait)
    return ModelResponse(answer if done else AckResponse(status="pending"), (b"x-operation-id", mark.operation_id.encode()))
