"""Run Lua scripts by name, with named arguments. No other module calls EVALSHA."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoScriptError, RedisError

from agent_memory.foundation.core.errors import AgentMemoryError, ErasureUnderWay, RedisUnavailable
from agent_memory.foundation.core.scope import current_work
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.connection import redis_errors
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.lua_files import load
from agent_memory.foundation.storage.round_trip import command, exchange

Arg = str | bytes | int | float

_FSYNC_MS = 3000
# A write waits, with growing pauses, for an erasure that was requested at most this long ago. An older erasure has
# either no worker or a lot of data to delete.
_ERASURE_SECONDS = 3.0
_ERASURE_LOOK_SECONDS = 0.02
_LOOKS_GROW = 1.25
_MOST_LOOK_SECONDS = 0.25
# The reason recorded for a dead letter whose attempts began but never ended.
NEVER_ENDED = "no attempt ended, not even with an error: it may have crashed the workers"


class Script:
    """A Lua script. If Redis already has the script, calls send only its digest."""

    def __init__(self, client: Redis, name: str, *, fsync: bool = False) -> None:
        """Load a script. With `fsync`, each call waits until its change is on disk."""
        self._client = client
        self._lua = load(name)
        self._sha: str = client.register_script(self._lua.source).sha
        self._fsync = fsync

    async def __call__(self, holder: object = None, /, **named: Any) -> Any:
        """Run the script and return its reply.

        Arguments come from `named` or from attributes of `holder`. Waits if a recent erasure of the
        owner's data is running. Raises ErasureUnderWay for an older erasure, TypeError for wrong
        arguments, and the same errors as `redis_errors`.
        """
        call = self._lua.command("EVALSHA", self._sha, holder, named)
        pause = _ERASURE_LOOK_SECONDS
        while True:
            try:
                return await self._run(call)
            except ErasureUnderWay as error:  # The script changed nothing.
                if error.is_over or error.age >= _ERASURE_SECONDS or not current_work().waits:
                    raise
            await asyncio.sleep(pause)
            pause = min(pause * _LOOKS_GROW, _MOST_LOOK_SECONDS)

    async def _run(self, call: Sequence[Any]) -> Any:
        with redis_errors():
            if self._fsync:
                return await self._on_disk(call)
            try:
                return await command(self._client, *call)
            except NoScriptError:
                return await command(self._client, *self._with_text(call))

    async def each(self, calls: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Run several calls in one round trip. If a call fails, its reply is the error.

        Raises errors that affect all calls.
        """
        commands = [self._lua.command("EVALSHA", self._sha, None, named) for named in calls]
        with redis_errors():
            replies = await exchange(self._client, commands)
        answers: list[Any] = []
        for reply, named in zip(replies, calls, strict=True):
            try:
                with redis_errors():
                    if isinstance(reply, NoScriptError):
                        answers.append(await self(**named))
                    elif isinstance(reply, Exception):
                        raise reply
                    else:
                        answers.append(reply)
            except (AgentMemoryError, RedisError) as error:
                answers.append(error)
        return answers

    def _with_text(self, call: Sequence[Any]) -> list[Any]:
        return ["EVAL", self._lua.source, *call[2:]]

    async def _on_disk(self, call: Sequence[Any]) -> Any:
        """Run the script and wait until its change is on disk. Raises RedisUnavailable."""
        # Both commands use one connection, because WAITAOF covers only its own connection's writes.
        for attempt in (call, self._with_text(call)):
            reply, waited = await exchange(self._client, [attempt, ("WAITAOF", 1, 0, _FSYNC_MS)])
            if isinstance(reply, NoScriptError):
                continue
            for answer in (reply, waited):
                if isinstance(answer, Exception):
                    raise answer
            if int(waited[0]) < 1:
                raise RedisUnavailable(f"written, but not on disk within {_FSYNC_MS} ms: try again", retry_after=1)
            return reply
        raise AssertionError("EVAL cannot lack its script")


def compact(value: Any) -> str:
    """Return the value as compact JSON. Raises ValueError for NaN."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def outbox_keys(keys: Keys, kind: DueKind) -> dict[str, str]:
    """Return the outbox keys for one kind of work, as script arguments."""
    return {"due": keys.due(kind), "tries": keys.tries(kind), "reasons": keys.why(kind), "dead": keys.dead(kind)}
