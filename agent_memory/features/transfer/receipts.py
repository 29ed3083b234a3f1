"""Receipts of exports, without their owner, for the export's operation."""

from __future__ import annotations

import json
from collections.abc import Mapping

from redis.asyncio import Redis
from ulid import ULID

from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import read, redis_errors
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory_client.models import OperationKind, OperationRecord, OperationState

_LIFETIME_SECONDS = 30 * 24 * 3600
_PREFIX = f"{OperationKind.EXPORT}-"


class ExportStore:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    async def begin(self, scope: Scope) -> str:
        """Start an export; return its operation's id."""
        operation_id = f"{_PREFIX}{ULID()}"
        await self.note(scope, operation_id, OperationState.RUNNING, {})
        return operation_id

    async def note(
        self, scope: Scope, operation_id: str, state: OperationState, counts: Mapping[str, int], reason: str | None = None
    ) -> None:
        body = {"tn": scope.tenant, "state": state.value, "counts": dict(counts), "why": reason}
        with redis_errors():
            await self._client.set(self._keys.export(operation_id.removeprefix(_PREFIX)), json.dumps(body), ex=_LIFETIME_SECONDS)

    async def get(self, scope: Scope, operation_id: str) -> OperationRecord | None:
        """Return the operation of an export; None if it is no export of the caller's tenant."""
        if not operation_id.startswith(_PREFIX):
            return None
        key = self._keys.export(operation_id.removeprefix(_PREFIX))
        raw = (await read(self._client, lambda pipe: pipe.get(key)))[0]
        body = {} if raw is None else json.loads(raw)
        if body.get("tn") != scope.tenant:
            return None
        state = OperationState(body["state"])
        return OperationRecord(id=operation_id, kind=OperationKind.EXPORT, state=state, reason=body["why"], stages=body["counts"])
