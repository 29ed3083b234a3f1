"""HTTP operations for user profiles."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Query, Response

from agent_memory.extensions.profile.service import ProfileService, place_rebuild
from agent_memory.features.jobs.order_store import OrderStore
from agent_memory.foundation.api.dependencies import (
    NamespaceQuery,
    OwnerParameters,
    OwnerQuery,
    ScopeDep,
    ServicesDep,
    TimezoneQuery,
    WriteScopeDep,
)
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.responses import ModelResponse, errors
from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.scope import Scope
from agent_memory_client.models import AckResponse, Instant
from agent_memory_client.models.features.profile import Profile, ProfileMoves, ProfileSchema

router = operations("profile")


@router.get("/v1/profile", response_model=Profile, responses=errors(400))
async def get_profile(
    services: ServicesDep,
    scope: ScopeDep,
    names: OwnerQuery,
    q: Annotated[str | None, Query(description="Also search the user's memories for this text.", max_length=10_000)] = None,
    limit: Annotated[int, Query(ge=1, le=64, description="The maximum number of entries of each kind.")] = 20,
    as_of: Annotated[Instant | None, Query(description="The profile as of this time (with a time zone). Default: now.")] = None,
    timezone: TimezoneQuery = None,
) -> Response:
    """Returns a user's stable facts, current facts and slot values in one namespace.

    If the request gives no namespace, the profile covers memories that have no namespace. A
    statement made on three different days within 14 days is stable until 180 days pass without a
    repetition.
    """
    service = services[ProfileService]
    return ModelResponse(await service.read(scope, names.user_id, names.namespace, query=q, limit=limit, as_of=as_of, timezone=timezone))


@router.get("/v1/profile/moves", response_model=ProfileMoves, responses=errors(400))
async def list_profile_moves(
    services: ServicesDep,
    scope: ScopeDep,
    names: OwnerQuery,
    limit: Annotated[int, Query(ge=1, le=1000, description="The maximum number of moves.")] = 100,
) -> Response:
    """Lists a profile's moves, newest first.

    A move means that a memory entered the profile, became stable, became current again, or left the
    profile.
    """
    return ModelResponse(await services[ProfileService].read_moves(scope, names.user_id, names.namespace, limit))


@router.post("/v1/profile/rebuild", response_model=AckResponse, responses=errors(400))
async def rebuild_profile(services: ServicesDep, scope: WriteScopeDep, names: OwnerQuery) -> Response:
    """Rebuilds a profile from its memories in the background. `X-Operation-Id` identifies the job.

    Profiles update automatically when memories change. Use this operation for memories stored
    before profiles were available, or after a time zone change.
    """
    return await order_rebuild(services, scope, "profile", names)


async def order_rebuild(services: Services, scope: Scope, noun: str, names: OwnerParameters) -> Response:
    """Request a rebuild. `noun` is "profile" or "timeline". Raises Forbidden or BadInput."""
    mark = await place_rebuild(services[OrderStore], scope, noun, names.user_id, names.namespace)
    return ModelResponse(AckResponse(status="ok"), (b"x-operation-id", mark.operation_id.encode()))


@router.get("/v1/profile/schema", response_model=ProfileSchema, responses=errors())
async def get_profile_schema(services: ServicesDep, scope: ScopeDep, namespace: NamespaceQuery = None) -> Response:
    """Returns a namespace's profile schema, including its topics and slots.

    If the namespace has no schema, returns the tenant's schema or the default.
    """
    return ModelResponse(await services[ProfileService].get_schema(scope, namespace))


@router.put("/v1/profile/schema", response_model=ProfileSchema, responses=errors(413, 415))
async def put_profile_schema(
    services: ServicesDep, scope: WriteScopeDep, body: Annotated[ProfileSchema, Body()], namespace: NamespaceQuery = None
) -> Response:
    """Replaces the schema of a namespace, or the tenant's schema if `namespace` is missing.

    Profiles use the new schema immediately.
    """
    return ModelResponse(await services[ProfileService].put_schema(scope, namespace, body))


@router.delete("/v1/profile/schema", response_model=AckResponse, responses=errors())
async def delete_profile_schema(services: ServicesDep, scope: WriteScopeDep, namespace: NamespaceQuery = None) -> Response:
    """Deletes a namespace's or the tenant's schema. A missing schema is not an error."""
    return ModelResponse(await services[ProfileService].delete_schema(scope, namespace))
