"""Update the data that features derive from memories, before the caller gets a response."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.foundation.core.feature import Follower

log = logging.getLogger(__name__)


class MemoryFollowers:
    """Calls all followers after a caller has deleted or edited memories, so that derived text is up to date."""

    def __init__(self, followers: Sequence[Follower]) -> None:
        """Store `followers` without copying it, because features that open later add their own followers to it."""
        self._followers = followers

    async def follow(self, mids: Sequence[str]) -> None:
        """Update the data derived from these memories. If Redis is unavailable, a worker updates the data later."""
        for follower in self._followers if mids else ():
            try:
                await follower.follow_memories(mids)
            except RedisUnavailable:
                log.warning("cannot update data derived from %d memories; a worker will", len(mids), exc_info=True)
