"""Update profiles when memories change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, tzinfo

from agent_memory.extensions.profile.entries import FollowedMemory, entry_of
from agent_memory.extensions.profile.store import Followed, ProfileOwner, ProfileStore, ReadMemory, owner_of
from agent_memory.features.extraction.rule_store import RuleStore
from agent_memory.features.memories.upkeep.scan import MemoryScan, Selection
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.foundation.core.feature import Owner
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.llm.threads import run_in_thread

# Memories per script call. Each memory touches up to twenty groups.
_BATCH = 16
_TRIES = 5


class ProfileFollower:
    """Updates, rebuilds and erases profiles."""

    def __init__(self, store: ProfileStore, rules: RuleStore, scan: MemoryScan, *, statements: bool) -> None:
        """If `statements` is True, profiles include people's own messages, because no model extracts facts."""
        self._store = store
        self._rules = rules
        self._scan = scan
        self._statements = statements

    async def follow_memories(self, mids: Sequence[str]) -> None:
        """Update the profiles to which these memories belong or belonged.

        Raises RedisUnavailable if the memories change repeatedly during the update.
        """
        for start in range(0, len(mids), _BATCH):
            await self._follow(mids[start : start + _BATCH])

    async def _follow(self, mids: Sequence[str]) -> None:
        for _ in range(_TRIES):
            memories = await self._store.read_memories(mids)
            zones = await self.zones_of(read.memory for read in memories)
            done = await self._store.follow(await self._followed_all(memories, zones))
            mids = [mid for mid, followed in zip(mids, done, strict=True) if not followed]
            if not mids:
                return
        raise RedisUnavailable("memories changed again and again while their profile was brought up to date", retry_after=1)

    async def rebuild(self, scope: Scope, owner: ProfileOwner) -> int:
        """Rebuild a profile from the user's current memories; return the number of memories."""
        await self._store.clear(owner.name, owner.user_key, keeps_moves=True)
        count = 0
        async for page in self._scan.walk_memories(scope, Selection.of(owner.namespace, owner.user_id)):
            mids = [memory.mid for memory in page if memory.record.namespace == owner.namespace]
            await self.follow_memories(mids)
            count += len(mids)
        await self._store.note_rebuilt(owner.name)
        return count

    async def erase_owner(self, scope: Scope, owner: Owner) -> Counter[str]:
        erased: Counter[str] = Counter()
        for name, namespace in (await self._store.owners_of(scope.tenant, owner.user_id)).items():
            if owner.namespace in (None, namespace):
                user_key = ProfileOwner(scope.tenant, namespace, owner.user_id).user_key
                await self._store.clear(name, user_key, keeps_moves=False)
                erased["profiles"] += 1
        return erased

    async def _followed_all(self, memories: Sequence[ReadMemory], zones: dict[ProfileOwner, tzinfo]) -> list[Followed]:
        characters = sum(0 if read.memory is None else len(read.memory.record.text) for read in memories)
        return await run_in_thread(lambda: [self._followed(read, zones) for read in memories], characters)

    def _followed(self, read: ReadMemory, zones: dict[ProfileOwner, tzinfo]) -> Followed:
        owner = owner_of(read.memory)
        if read.memory is None or owner is None:
            return Followed(read.mid, read.state)
        entry = entry_of(read.memory, zones.get(owner, UTC), statements=self._statements)
        return Followed(read.mid, read.state, None if entry is None else owner, entry)

    async def zones_of(self, memories: Iterable[FollowedMemory | None]) -> dict[ProfileOwner, tzinfo]:
        """Return the time zone of each profile owner among these memories."""
        owners = dict.fromkeys(owner for memory in memories if (owner := owner_of(memory)) is not None)
        return {owner: await self.zone_of(owner) for owner in owners}

    async def zone_of(self, owner: ProfileOwner) -> tzinfo:
        """Return the time zone from the owner's extraction rules, or UTC if they do not set one."""
        return await self._rules.load_zone(scope_of_work(owner.tenant), owner.namespace, owner.user_id)
