"""Update data derived from memories before the caller gets a response."""

from __future__ import annotations

from collections.abc import Sequence

from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.foundation.core.feature import Follower
from agent_memory.foundation.core.logs import get_logger

log = get_logger(__name__)


class MemoryFollowers:
    """Calls all followers after a caller has deleted or edited memories."""

    def __init__(self, followers: Sequence[Follower]) -> None:
        """Keep a reference to `followers`, because features that open later extend it."""
        self._followers = followers

    async def follow(self, mids: Sequence[str]) -> None:
        """Update the data derived from these memories. If Redis is unavailable, leave this to a worker."""
        for follower in self._followers if mids else ():
            try:
                await follower.follow_memories(mids)
            except RedisUnavailable:
                log.warning("derived data not updated; a worker will update it", memories=len(mids), exc_info=True)
