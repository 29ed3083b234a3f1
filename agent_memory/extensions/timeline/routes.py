"""HTTP operations for timelines."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import Query, Response

from agent_memory.extensions.profile.routes import order_rebuild
from agent_memory.extensions.timeline.service import TimelineService
from agent_memory.foundation.api.dependencies import OwnerQuery, ScopeDep, ServicesDep, TimezoneQuery, WriteScopeDep
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.responses import ModelResponse, errors
from agent_memory_client.models import AckResponse, Instant
from agent_memory_client.models.features.timeline import MAX_EVENTS, Granularity, Timeline, TimelineQuery

router = operations("timeline")


@router.get("/v1/timeline", response_model=Timeline, responses=errors(400))
async def get_timeline(
    services: ServicesDep,
    scope: ScopeDep,
    names: OwnerQuery,
    from_: Annotated[date | None, Query(alias="from", description="The first day, such as 2024-03-01.")] = None,
    to: Annotated[date | None, Query(description="The last day (inclusive).")] = None,
    topic: Annotated[str | None, Query(description="Only events about this topic.", max_length=512)] = None,
    entity: Annotated[str | None, Query(description="Only events that mention this person, place or thing.", max_length=512)] = None,
    granularity: Annotated[Granularity | None, Query(description="Group the events by `day`, `week` or `month`.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_EVENTS, description="The maximum number of events.")] = 100,
    offset: Annotated[int, Query(ge=0, le=1_000_000, description="The number of events to skip.")] = 0,
    as_of: Annotated[Instant | None, Query(description="The timeline as of this time (with a time zone). Default: now.")] = None,
    known_at: Annotated[Instant | None, Query(description="What the server knew at this time (with a time zone). Default: now.")] = None,
    timezone: TimezoneQuery = None,
) -> Response:
    """Returns a user's events in one namespace, ordered by day.

    If the request gives no namespace, returns the events that have no namespace. An event matches
    if any of its days is between `from` and `to`. Days are in `timezone`, which defaults to the
    user's time zone.
    """
    values = names.model_dump() | {"from": from_, "to": to, "as_of": as_of, "known_at": known_at, "timezone": timezone}
    values |= {"topic": topic, "entity": entity, "granularity": granularity, "limit": limit, "offset": offset}
    return ModelResponse(await services[TimelineService].read(scope, TimelineQuery.model_validate(values)))


@router.post("/v1/timeline/rebuild", response_model=AckResponse, responses=errors(400))
async def rebuild_timeline(services: ServicesDep, scope: WriteScopeDep, names: OwnerQuery) -> Response:
    """Rebuilds a timeline from its memories in the background. `X-Operation-Id` identifies the job.

    Timelines update automatically when memories change. Use this operation for memories stored
    before timelines were available, or after a time zone change.
    """
    return await order_rebuild(services, scope, "timeline", names)
