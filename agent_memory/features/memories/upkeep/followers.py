"""What features derive of memories, brought up to date before a caller is answered."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.foundation.core.feature import Follower

log = logging.getLogger(__name__)


class MemoryFollowers:
    """Calls all followers at once after a caller deleted, edited or forgot memories.

    A worker would do it a moment later, and does it again; but what somebody took away must not stand in their profile meanwhile, however
    busy the workers are.
    """

    def __init__(self, followers: Sequence[Follower]) -> None:
        """`followers` may grow: features that are opened later add theirs."""
        self._followers = followers

    async def follow(self, mids: Sequence[str]) -> None:
        """Brings what is derived of these memories up to date. What fails is left to the worker, for whom it is marked."""
        for follower in self._followers if mids else ():
            try:
                await follower.follow_memories(mids)
            except RedisUnavailable:
                log.warning("what is derived of %d memories is left to a worker", len(mids), exc_info=True)
