"""Update timelines when memories change."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, tzinfo

from agent_memory.extensions.profile.follower import ProfileFollower
from agent_memory.extensions.profile.store import owner_of
from agent_memory.extensions.timeline.events import events_of
from agent_memory.extensions.timeline.history import TimelineHistory
from agent_memory.extensions.timeline.store import Followed, ReadMemory, TimelineOwner, TimelineStore
from agent_memory.features.memories.upkeep.scan import MemoryScan, Selection
from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.foundation.core.feature import Owner
from agent_memory.foundation.core.scope import Scope

# Memories per script call. Each memory has a few events.
_BATCH = 32
_TRIES = 5


class TimelineFollower:
    """Updates, rebuilds and erases timelines."""

    def __init__(
        self, store: TimelineStore, profiles: ProfileFollower, scan: MemoryScan, history: TimelineHistory, *, statements: bool
    ) -> None:
        """`profiles` supplies users' time zones. If `statements` is True, people's dated statements become events."""
        self._store = store
        self._profiles = profiles
        self._scan = scan
        self._history = history
        self._statements = statements

    async def follow_memories(self, mids: Sequence[str]) -> None:
        """Update the timelines to which these memories belong or belonged.

        Raises RedisUnavailable if the memories change repeatedly during the update.
        """
        for start in range(0, len(mids), _BATCH):
            await self._follow(mids[start : start + _BATCH])

    async def _follow(self, mids: Sequence[str]) -> None:
        for _ in range(_TRIES):
            memories = await self._store.read_memories(mids)
            zones = await self._profiles.zones_of(read.memory for read in memories)
            done = await self._store.follow([self._followed(memory, zones) for memory in memories])
            mids = [mid for mid, followed in zip(mids, done, strict=True) if not followed]
            if not mids:
                return
        raise RedisUnavailable("memories changed again and again while their timeline was brought up to date", retry_after=1)

    async def rebuild(self, scope: Scope, owner: TimelineOwner) -> int:
        """Rebuild a timeline from current and ended memories; return the number of memories."""
        await self._store.clear(owner.name, owner.user_key)
        count = 0
        async for mids in self._memories_of(scope, owner):
            await self.follow_memories(mids)
            count += len(mids)
        return count

    async def _memories_of(self, scope: Scope, owner: TimelineOwner) -> AsyncIterator[list[str]]:
        async for page in self._scan.walk_memories(scope, Selection.of(owner.namespace, owner.user_id)):
            yield [memory.mid for memory in page if memory.record.namespace == owner.namespace]
        async for mids in self._history.walk_over(scope, owner):
            yield mids

    async def erase_owner(self, scope: Scope, owner: Owner) -> Counter[str]:
        erased: Counter[str] = Counter()
        for name, namespace in (await self._store.owners_of(scope.tenant, owner.user_id)).items():
            if owner.namespace in (None, namespace):
                await self._store.clear(name, TimelineOwner(scope.tenant, namespace, owner.user_id).user_key)
                erased["timelines"] += 1
        return erased

    def _followed(self, read: ReadMemory, zones: dict[TimelineOwner, tzinfo]) -> Followed:
        owner = owner_of(read.memory)
        if read.memory is None or owner is None:
            return Followed(read.mid, read.state)
        entries = events_of(read.memory, zones.get(owner, UTC), statements=self._statements, over=read.over)
        return Followed(read.mid, read.state, owner if entries else None, entries, zones.get(owner, UTC))

    async def zone_of(self, owner: TimelineOwner) -> tzinfo:
        return await self._profiles.zone_of(owner)
