"""Store durable orders to delete a session's, a user's or an agent's data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from redis.asyncio import Redis
from ulid import ULID

from agent_memory.features.jobs.operation_store import Mark
from agent_memory.foundation.core.errors import Forbidden
from agent_memory.foundation.core.permissions import permit_session
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.erasures import erasure_place
from agent_memory.foundation.storage.keyspace import Keys, digest
from agent_memory.foundation.storage.scripts import Script


@dataclass(frozen=True, slots=True)
class Erasure:
    """The data to erase: a session's memories, or all of a user's or agent's data."""

    tenant: str
    namespace: str | None
    user_id: str | None
    session_id: str | None
    agent_id: str | None = None

    @property
    def place(self) -> str:
        """The name that Redis uses to reject writes until the erasure is done."""
        return erasure_place(self.tenant, self.namespace, self.user_id, self.session_id, self.agent_id)


def permit_erasure(scope: Scope, erasure: Erasure) -> None:
    """Raise Forbidden if the caller is not allowed to erase this data."""
    permit_session(scope, SessionRef("", erasure.namespace, erasure.user_id), write=True)
    if scope.agents is not None and erasure.agent_id not in scope.agents:
        raise Forbidden("credentials that are limited to some agents cannot erase users or memories of sessions: name the memories' ids")


class ErasureOrders:
    def __init__(self, client: Redis, keys: Keys, *, fsync: bool = False) -> None:
        """Create the store. With `fsync`, write each order to disk before acknowledging it."""
        self._keys = keys
        self._order = Script(client, "jobs/erasure_order", fsync=fsync)

    async def order_erasure(self, scope: Scope, erasure: Erasure) -> Mark:
        """Store an erasure order and mark it as due, atomically. Raises Forbidden.

        Identical requests share the order until the erasure is done.
        """
        permit_erasure(scope, erasure)
        names = (scope.tenant, erasure.namespace, erasure.user_id, erasure.session_id)
        name = digest("erasure", *names) if erasure.agent_id is None else digest("erasure of an agent", *names, erasure.agent_id)
        body = {
            "tn": scope.tenant,
            "ns": erasure.namespace,
            "us": erasure.user_id,
            "sid": erasure.session_id,
            "of": str(ULID()),
            "pl": erasure.place,
        }
        body |= {} if erasure.agent_id is None else {"ag": erasure.agent_id}
        # The receipt must not reveal whose data was erased.
        body |= {"by": "self" if scope.actor == erasure.user_id else scope.actor, "at": datetime.now(UTC).isoformat()}
        order: bytes = await self._order(
            orders=self._keys.erasure(""),
            due=self._keys.due(DueKind.DELETION),
            dead=self._keys.dead(DueKind.DELETION),
            wake=self._keys.wake,
            root=self._keys.root,
            name=name,
            body=json.dumps(body),
            place=erasure.place,
        )
        return Mark(DueKind.DELETION, order.decode())
