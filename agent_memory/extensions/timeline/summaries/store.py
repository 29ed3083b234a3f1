"""Summaries of periods in Redis: waiting periods, inputs and results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from redis.asyncio import Redis

from agent_memory.extensions.timeline.event_time import PRECISIONS
from agent_memory.extensions.timeline.events import facet
from agent_memory.extensions.timeline.keys import TimelineKeys
from agent_memory.extensions.timeline.periods import day_number, period_of_key
from agent_memory.extensions.timeline.store import live_summary
from agent_memory.foundation.storage.connection import read
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Script

# Events per precision in a summary, the first of the period.
_MOST_EVENTS = 200


@dataclass(frozen=True, slots=True)
class PeriodInputs:
    """Inputs of a period's summary. The script checks `mark`; "" if the period does not wait."""

    mark: str
    count: int
    """Number of events in the period."""
    events: Sequence[dict[str, Any]]
    """A day's events; of a longer period, those not dated to a day."""
    days: Sequence[tuple[str, dict[str, Any]]] = ()
    """Summaries of its days, with their names in keys."""
    waits_until: float | None = None
    """When (s) the last of its waiting days may be summarized; None if none waits."""


class WaitingTimeline(NamedTuple):
    """A timeline with a finished period without a summary."""

    owner: str
    """Its name in keys."""
    tenant: str


class SummaryStore:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._timeline_keys = TimelineKeys(keys.root)
        self._read = Script(client, "timeline/timeline_period")
        self._put = Script(client, "timeline/timeline_summary")

    async def waiting_timelines(self, limit: int) -> list[WaitingTimeline]:
        """Return timelines with finished periods that wait for a summary, longest waiting first."""
        now = datetime.now(UTC).timestamp()
        key = self._timeline_keys.waiting
        (names,) = await read(self._client, lambda pipe: pipe.zrangebyscore(key, "-inf", now, start=0, num=limit))
        owners = [name.decode() for name in names]
        names = list(map(self._timeline_keys.timeline, owners))
        rows = await read(self._client, lambda pipe: [pipe.hget(name, "o") for name in names]) if names else []
        return [WaitingTimeline(owner, json.loads(row)[0]) for owner, row in zip(owners, rows, strict=True) if row is not None]

    async def waiting_periods(self, owner: str, limit: int) -> list[str]:
        """Return an owner's finished waiting periods (names in keys), days before weeks before months."""
        key, now = f"{self._timeline_keys.timeline(owner)}:p", datetime.now(UTC).timestamp()
        (names,) = await read(self._client, lambda pipe: pipe.zrangebyscore(key, "-inf", now, start=0, num=limit))
        return sorted((name.decode() for name in names), key=lambda name: ("dwm".index(name[0]), int(name[1:])))

    async def read_inputs(self, owner: str, key: str) -> PeriodInputs:
        """Read the inputs of a period's summary, in one round trip."""
        period, unit = period_of_key(key)
        low, high = day_number(period.start), day_number(period.end)
        days = [] if unit == "day" else [f"d{number}" for number in range(low, high + 1)]
        finest = PRECISIONS[: PRECISIONS.index(unit) + 1]
        mark, count, events, stored, waits = await self._read(
            any=self._keys.config,
            root=self._keys.root,
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
        # A day's summary with an expired event is made again after its memory is removed.
        waiting = [float(moment) for moment in waits if moment] + [now] * any(value and not live_summary(value, now) for value in stored)
        parsed = [event for row in events if (event := json.loads(row)).get("until", float("inf")) > now]
        return PeriodInputs(mark.decode(), int(count), parsed, live, max(waiting, default=None))

    async def put_summary(self, owner: str, key: str, inputs: PeriodInputs, summary: dict[str, Any]) -> bool:
        """Store a summary; return False if an event changed since its inputs were read."""
        return await self._store(owner, key, inputs, 0.0, json.dumps(summary, ensure_ascii=False, separators=(",", ":")))

    async def put_off(self, owner: str, key: str, inputs: PeriodInputs, until: float) -> bool:
        """Delay a period until a moment (s); return False if it changed."""
        return await self._store(owner, key, inputs, until, None)

    async def _store(self, owner: str, key: str, inputs: PeriodInputs, later: float, summary: str | None) -> bool:
        named = {"any": self._keys.config, "root": self._keys.root, "owner": owner, "period": key}
        return bool(await self._put(**named, mark=inputs.mark, later=later, summary=summary))
