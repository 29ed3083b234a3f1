"""Searches over RESP2, where that hides nothing: its lists cost a third of RESP3's map for each hit.

A search reads some hundred hits; over RESP3 that costs 0.35 ms of CPU more, about a third of a search.
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
# A module's version as one number: two digits for each part.
_SEARCH_3 = 3_00_00


class SearchReader(PipelineReader):
    """Reads what holds searches.

    RESP3 carries warnings beside a reply. The one that RediSearch 2 has for a search without prefixes, "this is only what I have found in
    time", is an error for an engine whose ON_TIMEOUT is "fail": so each pipeline asks for that, too. Newer engines warn of more, and are
    always asked over RESP3.
    """

    def __init__(self, client: aioredis.Redis, resp2: aioredis.Redis | None) -> None:
        """`resp2` speaks RESP2; None where it is not to be used."""
        super().__init__(client)
        self._resp2 = resp2
        self._not_before = 0.0

    async def __call__(self, build: Callable[[Pipe], object]) -> list[Any]:
        """As `connection.read`."""
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
    """Whether a search has a prefix, which may stand for more values than the engine looks at."""
    return parts[0] == "FT.SEARCH" and "*}" in parts[2]


def _fails_on_timeout(reply: Any) -> bool:
    """Whether an engine that answers this about ON_TIMEOUT, a map or a list of pairs, fails where it has not found everything in time."""
    return dict(reply).get(b"ON_TIMEOUT") == b"fail"


async def answers_in_lists(client: aioredis.Redis) -> bool:
    """Whether a Redis, asked over RESP2, is one that `SearchReader` may use."""
    try:
        modules = (await client.info("modules"))["modules"]
        version = next(int(module["ver"]) for module in modules if module["name"] == "search")
        return version < _SEARCH_3 and _fails_on_timeout(await client.execute_command(*_ASK_ON_TIMEOUT))
    except (RedisError, OSError, KeyError, ValueError, TypeError, StopIteration):
        return False
