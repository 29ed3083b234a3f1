"""Update what features derive from memories before a caller is answered."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.foundation.core.feature import Follower

log = logging.getLogger(__name__)


class MemoryFollowers:
    """Calls all followers after a caller deleted, edited or forgot memories: derived text must not lag behind."""

    def __init__(self, followers: Sequence[Follower]) -> None:
        """`followers` may grow: features opened later add theirs."""
        self._followers = followers

    async def follow(self, mids: Sequence[str]) -> None:
        """Update what is derived from these memories. Failures are left to the worker."""
        for follower in self._followers if mids else ():
            try:
                await follower.follow_memories(mids)
            except RedisUnavailable:
                log.warning("what is derived of %d memories is left to a worker", len(mids), exc_info=True)
