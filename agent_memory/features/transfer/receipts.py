"""Receipts of exports: what was written out, without whose it was. For the operation that an export is."""

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
    """Writes and reads receipts."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    async def begin(self, scope: Scope) -> str:
        """A new export; returns its operation's id."""
        operation_id = f"{_PREFIX}{ULID()}"
        await self.note(scope, operation_id, OperationState.RUNNING, {})
        return operation_id

    async def note(
        self, scope: Scope, operation_id: str, state: OperationState, counts: Mapping[str, int], reason: str | None = None
    ) -> None:
        """How far an export is, or how it ended."""
        body = {"tn": scope.tenant, "state": state.value, "counts": dict(counts), "why": reason}
        with redis_errors():
            await self._client.set(self._keys.export(operation_id.removeprefix(_PREFIX)), json.dumps(body), ex=_LIFETIME_SECONDS)

    async def get(self, scope: Scope, operation_id: str) -> OperationRecord | None:
        """The operation of an id, None when it is no export of the caller's tenant. It names nobody: only its asker knows the id."""
        if not operation_id.startswith(_PREFIX):
            return None
        key = self._keys.export(operation_id.removeprefix(_PREFIX))
        raw = (await read(self._client, lambda pipe: pipe.get(key)))[0]
        body = {} if raw is None else json.loads(raw)
        if body.get("tn") != scope.tenant:
            return None
        state = OperationState(body["state"])
        return OperationRecord(id=operation_id, kind=OperationKind.EXPORT, state=state, reason=body["why"], stages=body["counts"])
