"""Update timelines when memories change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import tzinfo
from typing import Any

from agent_memory.extensions.profile.follower import OwnerFollower
from agent_memory.extensions.profile.store import ReadMemory, owner_of
from agent_memory.extensions.timeline.events import events_of
from agent_memory.extensions.timeline.history import TimelineHistory
from agent_memory.extensions.timeline.store import TimelineOwner, TimelineStore
from agent_memory.features.extraction.rule_store import RuleStore
from agent_memory.features.memories.upkeep.scan import MemoryScan
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.scripts import compact


class TimelineFollower(OwnerFollower):
    noun = "timeline"
    batch = 32  # Each memory has a few events.

    def __init__(self, store: TimelineStore, rules: RuleStore, scan: MemoryScan, history: TimelineHistory, *, statements: bool) -> None:
        super().__init__(store, rules, scan, statements=statements)
        self._history = history

    def _derived(self, read: ReadMemory, zone: tzinfo) -> Mapping[str, Any] | None:
        owner = owner_of(read.memory)
        events = [] if read.memory is None else events_of(read.memory, zone, statements=self._statements, over=read.over)
        if owner is None or not events:
            return None
        return {"identity": compact([*owner, str(zone)]), "events": [event.item(zone) for event in events]}

    async def _mids_of(self, scope: Scope, owner: TimelineOwner) -> AsyncIterator[list[str]]:
        async for mids in super()._mids_of(scope, owner):
            yield mids
        async for mids in self._history.walk_over(scope, owner):
            yield mids
