"""Search over RESP2, because its lists are faster to parse than RESP3's maps.

This saves 0.35 ms of CPU time per search, about a third.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

import redis.asyncio as aioredis
from redis.exceptions import NoPermissionError, RedisError

from agent_memory.foundation.storage.connection import Pipe, PipelineReader, read, send_reads

_ASK_ON_TIMEOUT = ("FT.CONFIG", "GET", "ON_TIMEOUT")
_DISTRUST_SECONDS = 60.0
# RediSearch 3.0.0: a module version has two digits for each part.
_SEARCH_3 = 3_00_00


class SearchReader(PipelineReader):
    """Runs search pipelines over RESP2 if that is safe, or else over RESP3.

    RESP2 replies contain no warnings. RESP2 is safe with RediSearch 2 for queries with no prefixes,
    if ON_TIMEOUT "fail" turns incomplete results into errors.
    """

    def __init__(self, client: aioredis.Redis, resp2: aioredis.Redis | None) -> None:
        """Create a reader. If `resp2` is None, use only RESP3 (`client`)."""
        super().__init__(client)
        self._resp2 = resp2
        self._not_before = 0.0

    async def __call__(self, build: Callable[[Pipe], object]) -> list[Any]:
        if self._resp2 is None or monotonic() < self._not_before:
            return await read(self._client, build)
        pipe = self._resp2.pipeline(transaction=False)
        pipe.execute_command(*_ASK_ON_TIMEOUT)
        build(pipe)
        if not any(_has_prefix(parts) for parts, _ in pipe.command_stack):
            try:
                on_timeout, *replies = await send_reads(self._resp2, pipe.command_stack)
                if _fails_on_timeout(on_timeout):
                    return replies
            except NoPermissionError:
                pass
            self._not_before = monotonic() + _DISTRUST_SECONDS
        return await send_reads(self._client, pipe.command_stack[1:])


def _has_prefix(parts: tuple[Any, ...]) -> bool:
    # A prefix may match more values than the engine visits.
    return parts[0] == "FT.SEARCH" and "*}" in parts[2]


def _fails_on_timeout(reply: Any) -> bool:
    return dict(reply).get(b"ON_TIMEOUT") == b"fail"


async def answers_in_lists(client: aioredis.Redis) -> bool:
    """True if `SearchReader` may use RESP2 with this Redis."""
    try:
        modules = (await client.info("modules"))["modules"]
        version = next(int(module["ver"]) for module in modules if module["name"] == "search")
        return version < _SEARCH_3 and _fails_on_timeout(await client.execute_command(*_ASK_ON_TIMEOUT))
    except (RedisError, OSError, KeyError, ValueError, TypeError, StopIteration):
        return False
