"""Store timelines in Redis."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from redis.asyncio import Redis

from agent_memory.extensions.profile.store import STATE, OwnerStore, ProfileOwner, ReadMemory, decode_followed
from agent_memory.extensions.timeline.periods import SummaryState
from agent_memory.foundation.core.ids import made_id
from agent_memory.foundation.storage.connection import Pipe, read
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.lua_files import load
from agent_memory.foundation.storage.scripts import Script
from agent_memory_client.models.features.timeline import Granularity, PeriodSummary

TimelineOwner = ProfileOwner
"""One user in one namespace. None means outside all namespaces."""
# Maximum number of events that a prompt reads.
_MOST_IN_PROMPT = 48
_PROMPT = load("timeline/timeline_prompt")


@dataclass(frozen=True, slots=True)
class EventRange:
    """The requested events. Limits are in days since 1970; None means no limit."""

    low: int | None = None
    high: int | None = None
    facets: Sequence[str] = ()
    offset: int = 0
    limit: int = 100
    unit: Granularity | None = None
    """The unit of the summaries to read. None means no summaries."""


class TimelineKeys:
    def __init__(self, root: str) -> None:
        self._root = root

    def timeline(self, owner: str) -> str:
        """Return the key of a timeline's events. Its other keys append ":" and a letter."""
        return f"{self._root}tl:{owner}"

    @property
    def waiting(self) -> str:
        """The key of the sorted set of timelines with pending summaries."""
        return f"{self._root}tlp"


class TimelineStore(OwnerStore):
    def __init__(self, client: Redis, keys: Keys) -> None:
        super().__init__(client, keys, Script(client, "timeline/timeline_follow"), Script(client, "timeline/timeline_clear"), "tlu")
        self._read = Script(client, "timeline/timeline_read")

    async def read_memories(self, mids: Sequence[str]) -> list[ReadMemory]:
        """Return current and ended memories with their evidence."""

        def build(pipe: Pipe) -> None:
            for mid in mids:
                pipe.hmget(self._keys.memory(mid), STATE)
                pipe.hmget(self._keys.history(mid), STATE)
                pipe.hgetall(self._keys.evidence(mid))

        replies = await read(self._client, build) if mids else []
        return [_read_memory(mid, *replies[3 * index : 3 * index + 3]) for index, mid in enumerate(mids)]

    def _stamps(self) -> Mapping[str, str]:
        return {"stamp": made_id()}

    async def read_events(self, owner: TimelineOwner, event_range: EventRange) -> tuple[int, list[dict[str, Any]], dict[str, SummaryState]]:
        """Return the number of matches, a page sorted by first day, and the summaries of its periods."""
        series, other = [*event_range.facets, "", ""][:2]
        total, rows, periods = await self._read(
            self._keys,
            owner=owner.name,
            low="-inf" if event_range.low is None else event_range.low,
            high="+inf" if event_range.high is None else event_range.high,
            series=series,
            other=other,
            unit=event_range.unit or "",
            offset=event_range.offset,
            limit=event_range.limit,
        )
        now = datetime.now(UTC).timestamp()
        states = {key.decode(): summary_state(value, mark, now) for key, value, mark in zip(*[iter(periods)] * 3, strict=True)}
        return int(total), [json.loads(row) for row in rows], states

    def queue_prompt(self, pipe: Pipe, owner: TimelineOwner, low: int | None, high: int | None, periods: Sequence[str] | None) -> None:
        """Queue a read for a prompt. Read no events if `periods` is None.

        The range is in days since 1970, and None means no limit.
        """
        call = _PROMPT.read_only(
            self._keys,
            owner=owner.name,
            low="-inf" if low is None else low,
            high="+inf" if high is None else high,
            events=periods is not None,
            periods=list(periods or ()),
            most=_MOST_IN_PROMPT,
        )
        pipe.execute_command(*call)


def live_summary(stored: bytes, now: float) -> dict[str, Any] | None:
    """Return a summary, or None if it is missing or has expired by the Unix time `now`."""
    summary: dict[str, Any] | None = json.loads(stored) if stored else None
    return None if summary is None or summary.get("until", float("inf")) <= now else summary


def summary_state(stored: bytes, mark: bytes, now: float) -> SummaryState:
    """Return a period's summary.

    If there is no summary, the state is "open" until the period ends, and then "pending".
    """
    summary = live_summary(stored, now)
    if summary is not None:
        return SummaryState("current", PeriodSummary.model_validate(summary))
    ends = mark.rpartition(b" ")[2]
    return SummaryState("open" if ends and float(ends) > now else "pending")


def parse_prompt_reply(reply: Any, now: float) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """Return events, and summaries by period key. Omit anything that has expired by `now`."""
    events, stored = reply
    active_events = [event for row in events if (event := json.loads(row)).get("until", float("inf")) > now]
    pairs = zip(stored[::2], stored[1::2], strict=True)
    live = {key.decode(): summary for key, value in pairs if (summary := live_summary(value, now)) is not None}
    return active_events, live


def _read_memory(mid: str, current: Sequence[bytes | None], former: Sequence[bytes | None], evidence: Mapping[bytes, bytes]) -> ReadMemory:
    over = current[1] is None
    read = decode_followed(mid, former if over else current, evidence)
    return read if read.memory is None else read._replace(state=[*read.state, "over" if over else ""], over=over)
