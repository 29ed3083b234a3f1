"""Orders to delete all of a session's or a user's memories: durable from the moment they are acknowledged, worked off by workers."""

from __future__ import annotations

import json
from dataclasses import dataclass

from redis.asyncio import Redis
from ulid import ULID

from agent_memory.core.errors import Forbidden
from agent_memory.core.permissions import permit_session
from agent_memory.core.scope import Scope, SessionRef
from agent_memory.core.task_kinds import DueKind
from agent_memory.jobs.operation_store import Mark
from agent_memory.storage.connection import redis_errors
from agent_memory.storage.keyspace import Keys, digest


@dataclass(frozen=True, slots=True)
class Erasure:
    """What is to be deleted: the memories of one session, or (without `session_id`) everything of a user, or of an agent."""

    tenant: str
    namespace: str | None
    user_id: str | None
    session_id: str | None
    agent_id: str | None = None


def permit_erasure(scope: Scope, what: Erasure) -> None:
    """Raises Forbidden for what is out of the caller's reach: all of a user or session is more than what is some agents'."""
    permit_session(scope, SessionRef("", what.namespace, what.user_id), write=True)
    if scope.agents is not None and what.agent_id not in scope.agents:
        raise Forbidden("credentials that are limited to some agents erase no users, and no memories of sessions: name the memories' ids")


class ErasureOrders:
    """Writes orders down."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    async def order_erasure(self, scope: Scope, what: Erasure) -> Mark:
        """Writes an order down and marks it due, in one step. Raises Forbidden for what is out of reach.

        The same deletion is one order, so that of a request and its repetition none is left over to delete what came after. Ordered again
        while it is carried out, it is carried out once more.
        """
        permit_erasure(scope, what)
        names = (scope.tenant, what.namespace, what.user_id, what.session_id)
        name = digest("erasure", *names) if what.agent_id is None else digest("erasure of an agent", *names, what.agent_id)
        body = {"tn": scope.tenant, "ns": what.namespace, "us": what.user_id, "sid": what.session_id, "of": str(ULID())}
        body |= {} if what.agent_id is None else {"ag": what.agent_id}
        with redis_errors():
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.set(self._keys.erasure(name), json.dumps(body))
                pipe.zrem(self._keys.dead(DueKind.DELETION), name)
                pipe.zadd(self._keys.due(DueKind.DELETION), {name: 0})
                pipe.lpush(self._keys.wake, "1")
                pipe.ltrim(self._keys.wake, 0, 0)
                await pipe.execute()
        return Mark(DueKind.DELETION, name)
