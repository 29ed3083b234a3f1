"""Store timelines in Redis. One script updates them; another reads a page of events in one round trip."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple

from redis.asyncio import Redis

from agent_memory.extensions.profile.entries import FollowedMemory
from agent_memory.extensions.profile.store import STATE, ProfileOwner, decode_followed
from agent_memory.extensions.timeline.events import TimelineEntry
from agent_memory.extensions.timeline.keys import TimelineKeys
from agent_memory.extensions.timeline.periods import SummaryState
from agent_memory.foundation.core.ids import made_id
from agent_memory.foundation.storage.connection import Pipe, read
from agent_memory.foundation.storage.keyspace import Keys, digest, tag, untag
from agent_memory.foundation.storage.lua_files import load
from agent_memory.foundation.storage.scripts import Script
from agent_memory_client.models.features.timeline import Granularity, PeriodSummary

TimelineOwner = ProfileOwner
"""The owner of a timeline: exactly this user in exactly this namespace. The namespace None means no namespace."""
# Most events that a prompt reads.
_MOST_IN_PROMPT = 48
_PROMPT = load("timeline/timeline_prompt")


class ReadMemory(NamedTuple):
    """A memory as read from Redis.

    `memory` is None if it is deleted. The script skips the memory if `state` has changed.
    """

    mid: str
    state: Sequence[str]
    memory: FollowedMemory | None = None
    over: bool = False
    """True if the memory has ended. Its row is then in the history."""


@dataclass(frozen=True, slots=True)
class Followed:
    """A memory's part in a timeline. Without an owner or entries, the script removes the memory from its timeline."""

    mid: str
    state: Sequence[str]
    owner: TimelineOwner | None = None
    entries: Sequence[TimelineEntry] = ()
    zone: tzinfo = UTC

    def item(self) -> dict[str, Any]:
        item: dict[str, Any] = {"mid": self.mid, "state": list(self.state)}
        if self.owner is not None and self.entries:
            item |= {"owner": self.owner.name, "user_key": self.owner.user_key, "namespace": tag(self.owner.namespace or "")}
            item["identity"] = json.dumps([*self.owner, str(self.zone)], ensure_ascii=False, separators=(",", ":"))
            item["events"] = [entry.item(self.zone) for entry in self.entries]
        return item


@dataclass(frozen=True, slots=True)
class EventRange:
    """The requested events: a range in days since 1970 (None means no limit), required facets, and a page."""

    low: int | None = None
    high: int | None = None
    facets: Sequence[str] = ()
    offset: int = 0
    limit: int = 100
    unit: Granularity | None = None
    """The unit of the periods whose summaries are read as well. None means that no summaries are needed."""


class PromptRange(NamedTuple):
    """What to read for a prompt: a range in days since 1970 (None: no limit), whether to read events, and periods."""

    low: int | None
    high: int | None
    events: bool
    periods: Sequence[str]


class PromptEvents(NamedTuple):
    """Events for a prompt, and summaries by their periods' names in Redis keys."""

    events: Sequence[dict[str, Any]]
    summaries: dict[str, dict[str, Any]]


class TimelineStore:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._timeline_keys = TimelineKeys(keys.root)
        self._follow = Script(client, "timeline/timeline_follow")
        self._clear = Script(client, "timeline/timeline_clear")
        self._read = Script(client, "timeline/timeline_read")

    async def read_memories(self, mids: Sequence[str]) -> list[ReadMemory]:
        """Return current and ended memories with their evidence. Needs one round trip."""

        def build(pipe: Pipe) -> None:
            for mid in mids:
                pipe.hmget(self._keys.memory(mid), STATE)
                pipe.hmget(self._keys.history(mid), STATE)
                pipe.hgetall(self._keys.evidence(mid))

        replies = await read(self._client, build) if mids else []
        return [_read_memory(mid, *replies[3 * index : 3 * index + 3]) for index, mid in enumerate(mids)]

    async def follow(self, followed: Sequence[Followed]) -> list[bool]:
        """Update timelines. Returns False for each memory that changed after it was read and was skipped."""
        if not followed:
            return []
        items = [item.item() for item in followed]
        reply = await self._follow(any=self._keys.config, root=self._keys.root, stamp=made_id(), items=items)
        return [bool(done) for done in reply]

    async def clear(self, owner: str, user_key: str) -> int:
        """Delete a timeline; return the number of its memories."""
        return int(await self._clear(any=self._keys.config, root=self._keys.root, owner=owner, user_key=user_key))

    async def read_events(self, owner: TimelineOwner, event_range: EventRange) -> tuple[int, list[dict[str, Any]], dict[str, SummaryState]]:
        """Return the number of matching events, a page of them by first day, and the page's period summaries."""
        series, other = [*event_range.facets, "", ""][:2]
        total, rows, periods = await self._read(
            any=self._keys.config,
            root=self._keys.root,
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

    def queue_prompt(self, pipe: Pipe, owner: TimelineOwner, prompt_range: PromptRange) -> None:
        """Queue the read for a prompt. `parse_prompt_reply` parses its single reply."""
        call = _PROMPT.read_only(
            any=self._keys.config,
            root=self._keys.root,
            owner=owner.name,
            low="-inf" if prompt_range.low is None else prompt_range.low,
            high="+inf" if prompt_range.high is None else prompt_range.high,
            events=prompt_range.events,
            periods=list(prompt_range.periods),
            most=_MOST_IN_PROMPT,
        )
        pipe.execute_command(*call)

    async def owners_of(self, tenant: str, user_id: str) -> dict[str, str | None]:
        """Return a user's timelines as a dict from the owner's name in Redis keys to the namespace."""
        key = self._timeline_keys.of_user(digest("profiles", tenant, user_id))
        (rows,) = await read(self._client, lambda pipe: pipe.hgetall(key))
        return {name.decode(): untag(namespace.decode()) or None for name, namespace in rows.items()}


def live_summary(stored: bytes, now: float) -> dict[str, Any] | None:
    """Return a stored summary, or None if it is missing or an event in it has expired at `now` (seconds since 1970)."""
    summary: dict[str, Any] | None = json.loads(stored) if stored else None
    return None if summary is None or summary.get("until", float("inf")) <= now else summary


def summary_state(stored: bytes, mark: bytes, now: float) -> SummaryState:
    """Return a period's summary. Without a summary, the state is "open" for an unfinished period, else "pending"."""
    summary = live_summary(stored, now)
    if summary is not None:
        return SummaryState("current", PeriodSummary.model_validate(summary))
    ends = mark.rpartition(b" ")[2]
    return SummaryState("open" if ends and float(ends) > now else "pending")


def parse_prompt_reply(reply: Any, now: float) -> PromptEvents | None:
    """Parse the reply to `queue_prompt`, without events and summaries that have expired at `now` (seconds since 1970).

    Returns None if there is no timeline.
    """
    identity, events, stored = reply
    if not identity:
        return None
    active_events = [event for row in events if (event := json.loads(row)).get("until", float("inf")) > now]
    pairs = zip(stored[::2], stored[1::2], strict=True)
    live = {key.decode(): summary for key, value in pairs if (summary := live_summary(value, now)) is not None}
    return PromptEvents(active_events, live)


def _read_memory(mid: str, current: Sequence[bytes | None], former: Sequence[bytes | None], evidence: Mapping[bytes, bytes]) -> ReadMemory:
    over = current[1] is None
    memory, state = decode_followed(mid, former if over else current, evidence)
    return ReadMemory(mid, ()) if memory is None else ReadMemory(mid, [*state, "over" if over else ""], memory, over)
