"""Update profiles when memories change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import tzinfo
from functools import partial
from typing import Any, ClassVar

from agent_memory.extensions.profile.entries import entry_of
from agent_memory.extensions.profile.store import OwnerStore, ProfileOwner, ReadMemory, followed_item, owner_of
from agent_memory.features.extraction.rule_store import RuleStore
from agent_memory.features.memories.upkeep.scan import MemoryScan, Selection
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.foundation.core.feature import Owner
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.llm.threads import run_in_thread

_TRIES = 5


class OwnerFollower(ABC):
    """Updates data derived from each owner's memories."""

    noun: ClassVar[str]
    batch: ClassVar[int]
    """Memories per script call."""

    def __init__(self, store: OwnerStore, rules: RuleStore, scan: MemoryScan, *, statements: bool) -> None:
        """Create a follower. Set `statements` if no model extracts facts."""
        self._store = store
        self._rules = rules
        self._scan = scan
        self._statements = statements

    @abstractmethod
    def _derived(self, read: ReadMemory, zone: tzinfo) -> Mapping[str, Any] | None:
        """Return the values to store, or None to remove the memory."""

    async def follow_memories(self, mids: Sequence[str]) -> None:
        """Update every owner that has or had one of these memories.

        Raises RedisUnavailable if the memories keep changing.
        """
        for start in range(0, len(mids), self.batch):
            await self._follow(mids[start : start + self.batch])

    async def _follow(self, mids: Sequence[str]) -> None:
        for _ in range(_TRIES):
            memories = await self._store.read_memories(mids)
            owners = {owner_of(read.memory) for read in memories} - {None}
            zones = {owner: await self.zone_of(owner) for owner in owners if owner is not None}
            characters = sum(0 if read.memory is None else len(read.memory.record.text) for read in memories)
            items = await run_in_thread(partial(self._items, memories, zones), characters)
            done = await self._store.follow(items)
            mids = [mid for mid, followed in zip(mids, done, strict=True) if not followed]
            if not mids:
                return
        raise RedisUnavailable(f"memories changed again and again while their {self.noun} was brought up to date", retry_after=1)

    def _items(self, memories: Sequence[ReadMemory], zones: Mapping[ProfileOwner, tzinfo]) -> list[dict[str, Any]]:
        owners = [owner_of(read.memory) for read in memories]
        return [
            followed_item(read, None if owner is None else self._derived(read, zones[owner]))
            for read, owner in zip(memories, owners, strict=True)
        ]

    async def rebuild(self, scope: Scope, owner: ProfileOwner) -> int:
        """Rebuild an owner's data from scratch. Return the number of memories."""
        await self._store.clear(owner, rebuilds=True)
        count = 0
        async for mids in self._mids_of(scope, owner):
            await self.follow_memories(mids)
            count += len(mids)
        await self._store.end_rebuild(owner)
        return count

    async def _mids_of(self, scope: Scope, owner: ProfileOwner) -> AsyncIterator[list[str]]:
        async for page in self._scan.walk_memories(scope, Selection.of(owner.namespace, owner.user_id)):
            yield [memory.mid for memory in page if memory.record.namespace == owner.namespace]

    async def erase_owner(self, scope: Scope, owner: Owner) -> Counter[str]:
        erased: Counter[str] = Counter()
        for each in await self._store.owners_of(scope.tenant, owner.user_id):
            if owner.namespace in (None, each.namespace):
                await self._store.clear(each)
                erased[f"{self.noun}s"] += 1
        return erased

    async def zone_of(self, owner: ProfileOwner) -> tzinfo:
        """Return the time zone from the extraction rules, or UTC."""
        return await self._rules.load_zone(scope_of_work(owner.tenant), owner.namespace, owner.user_id)


class ProfileFollower(OwnerFollower):
    noun = "profile"
    batch = 16  # Each memory touches up to twenty groups.

    def _derived(self, read: ReadMemory, zone: tzinfo) -> Mapping[str, Any] | None:
        entry = None if read.memory is None else entry_of(read.memory, zone, statements=self._statements)
        return None if entry is None else entry.values()
