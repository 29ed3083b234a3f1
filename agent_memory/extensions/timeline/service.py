"""Read and rebuild timelines."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from agent_memory.extensions.profile.service import requested_owner
from agent_memory.extensions.timeline.events import facet
from agent_memory.extensions.timeline.follower import TimelineFollower
from agent_memory.extensions.timeline.history import TimelineHistory, page_of
from agent_memory.extensions.timeline.periods import day_number, group_events
from agent_memory.extensions.timeline.store import EventRange, TimelineStore
from agent_memory.features.sessions.strategies import read_zone
from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.scope import Scope
from agent_memory_client.models.features.timeline import Timeline, TimelineEvent, TimelineQuery

SUMMARIZE = "summarize-periods"
"""Job: write a timeline's due summaries. `timeline` is the owner's `name`."""


class TimelineService:
    """Reads timelines and requests rebuilds.

    Callers restricted to certain agents cannot read timelines, because these cover all agents.
    """

    def __init__(self, store: TimelineStore, follower: TimelineFollower, history: TimelineHistory, *, statements: bool) -> None:
        self._store = store
        self._follower = follower
        self._history = history
        self._statements = statements

    async def read(self, scope: Scope, query: TimelineQuery) -> Timeline:
        """Return a user's events, ordered by first day.

        For a past time or another time zone, compute the events from the memories. Raises Forbidden or BadInput.
        """
        owner = requested_owner(scope, "timeline", query.user_id, query.namespace)
        event_range, now = _range(query), datetime.now(UTC)
        at = query.as_of or query.known_at
        zone = None if query.timezone is None else read_zone(query.timezone, where="query")
        if at is None and (zone is None or zone == await self._follower.zone_of(owner)):
            total, event_rows, summaries = await self._store.read_events(owner, event_range)
        else:
            zone = zone or await self._follower.zone_of(owner)
            as_of = now if at is None else query.as_of
            entries = await self._history.entries_at(scope, owner, zone, as_of, query.known_at, statements=self._statements)
            (total, event_rows), summaries = page_of(entries, event_range), {}
        events = _events(event_rows, (at or now).timestamp())
        periods = None if query.granularity is None else group_events(events, query.granularity, summaries)
        return Timeline(
            user_id=owner.user_id,
            namespace=owner.namespace,
            total=total,
            events=events if periods is None else [],
            periods=periods,
            as_of=at or now,
        )


def _range(query: TimelineQuery) -> EventRange:
    if query.from_ is not None and query.to is not None and query.from_ > query.to:
        raise BadInput("`from` must not be after `to`", field="from", where="query")
    facets = [facet(kind, value) for kind, value in (("topic", query.topic), ("entity", query.entity)) if value]
    low, high = (None if day is None else day_number(day) for day in (query.from_, query.to))
    # Summaries cover events from all topics, so a filtered page gets none.
    return EventRange(low, high, facets, query.offset, query.limit, None if facets else query.granularity)


def _events(event_rows: Sequence[dict[str, Any]], moment: float) -> list[TimelineEvent]:
    """Parse events, omitting expired ones."""
    return [TimelineEvent.model_validate(event) for event in event_rows if event.get("until", float("inf")) > moment]
