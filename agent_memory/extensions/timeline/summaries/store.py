"""Store period summaries in Redis, and read their inputs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from redis.asyncio import Redis

from agent_memory.extensions.timeline.event_time import PRECISIONS
from agent_memory.extensions.timeline.events import facet
from agent_memory.extensions.timeline.periods import day_number, period_of_key
from agent_memory.extensions.timeline.store import TimelineKeys, live_summary
from agent_memory.foundation.storage.connection import read
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Script, compact

# A summary covers only the first events of each precision in the period, at most this many.
_MOST_EVENTS = 200


@dataclass(frozen=True, slots=True)
class PeriodInputs:
    """The inputs for a period's summary.

    `mark` changes whenever the period's events do. It is "" if no summary is pending.
    """

    mark: str
    count: int
    """The number of events in the period."""
    events: Sequence[dict[str, Any]]
    """The events to summarize. For a week or month, only events without an exact day; `days` covers the others."""
    days: Sequence[tuple[str, dict[str, Any]]] = ()
    """The summaries of the period's days, each with its period key."""
    waits_until: float | None = None
    """The Unix time at which the last pending day is due, or None."""


class SummaryStore:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._timeline_keys = TimelineKeys(keys.root)
        self._read = Script(client, "timeline/timeline_period")
        self._put = Script(client, "timeline/timeline_summary")

    async def waiting_timelines(self, limit: int) -> list[tuple[str, str]]:
        """Return timelines with due summaries, as (owner's `name`, tenant), longest wait first."""
        now = datetime.now(UTC).timestamp()
        (names,) = await read(self._client, lambda pipe: pipe.zrangebyscore(self._timeline_keys.waiting, "-inf", now, start=0, num=limit))
        owners = [name.decode() for name in names]
        names = list(map(self._timeline_keys.timeline, owners))
        rows = await read(self._client, lambda pipe: [pipe.hget(name, "o") for name in names]) if names else []
        return [(owner, json.loads(row)[0]) for owner, row in zip(owners, rows, strict=True) if row is not None]

    async def waiting_periods(self, owner: str, limit: int) -> list[str]:
        """Return the keys of due periods: days, weeks and months, in that order."""
        key, now = f"{self._timeline_keys.timeline(owner)}:p", datetime.now(UTC).timestamp()
        (names,) = await read(self._client, lambda pipe: pipe.zrangebyscore(key, "-inf", now, start=0, num=limit))
        return sorted((name.decode() for name in names), key=lambda name: ("dwm".index(name[0]), int(name[1:])))

    async def read_inputs(self, owner: str, key: str) -> PeriodInputs:
        period, unit = period_of_key(key)
        low, high = day_number(period.start), day_number(period.end)
        days = [] if unit == "day" else [f"d{number}" for number in range(low, high + 1)]
        finest = PRECISIONS[: PRECISIONS.index(unit) + 1]
        mark, count, events, stored, waits = await self._read(
            self._keys,
            owner=owner,
            period=key,
            low=low,
            high=high,
            series=[facet("precision", precision) for precision in (finest if unit == "day" else finest[1:])],
            children=days,
            most=_MOST_EVENTS,
        )
        now = datetime.now(UTC).timestamp()
        live = [(day, summary) for day, value in zip(days, stored, strict=True) if (summary := live_summary(value, now)) is not None]
        # Wait for days whose summary has an expired event. Such a day gets a new summary once the event's memory is
        # removed.
        waiting = [float(moment) for moment in waits if moment] + [now] * any(value and not live_summary(value, now) for value in stored)
        parsed = [event for row in events if (event := json.loads(row)).get("until", float("inf")) > now]
        return PeriodInputs(mark.decode(), int(count), parsed, live, max(waiting, default=None))

    async def put_summary(self, owner: str, key: str, inputs: PeriodInputs, summary: dict[str, Any]) -> bool:
        """Store a summary. Return False if an event changed after `inputs` was read."""
        named = {"owner": owner, "period": key, "mark": inputs.mark}
        return bool(await self._put(self._keys, **named, later=0.0, summary=compact(summary)))

    async def put_off(self, owner: str, key: str, inputs: PeriodInputs, until: float) -> bool:
        """Postpone a summary to the Unix time `until`. Return False if an event has changed."""
        named = {"owner": owner, "period": key, "mark": inputs.mark}
        return bool(await self._put(self._keys, **named, later=until, summary=None))
