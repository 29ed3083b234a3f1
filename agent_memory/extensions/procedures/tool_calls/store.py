"""Store tool statistics in Redis."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any

from redis.asyncio import Redis
from redisvl.query import FilterQuery

from agent_memory.extensions.procedures.records import TOOL, TOOL_FIELDS, decode_tool, tool_fields, tool_pid
from agent_memory.extensions.procedures.search_index import ProcedureKeys, procedure_index_name
from agent_memory.extensions.procedures.tool_calls.traces import ToolCall, clean, example_of, shape_of
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import Pipe, read, redis_errors
from agent_memory.foundation.storage.erasures import ErasureGuard, guard_of
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Script
from agent_memory.foundation.storage.search.filters import is_value, where
from agent_memory.foundation.storage.search.indexes import VectorSpec
from agent_memory.foundation.storage.search.pagination import walk
from agent_memory.foundation.storage.search.queries import search
from agent_memory.foundation.storage.search.syntax import all_of
from agent_memory_client.models.features.procedures import ProcedureOwner, ToolMemory


def tools_of(scope: Scope, tool: str | None = None) -> str:
    """Return a filter for tool statistics. None matches all tools."""
    narrowed = (is_value("kd", TOOL), *(() if tool is None else (is_value("tl", tool),)))
    return all_of(where(scope), *narrowed)


class ToolStore:
    def __init__(self, client: Redis, keys: Keys, spec: VectorSpec, *, redacts: bool, fsync: bool = False) -> None:
        """Create the store. If `redacts` is set, redact secrets in arguments and errors."""
        self._client = client
        self._keys = keys
        self._procedure_keys = ProcedureKeys(keys.root)
        self._erasures = ErasureGuard(client, keys)
        self._index = procedure_index_name(keys, spec)
        self._redacts = redacts
        self._write = Script(client, "procedures/tool_write", fsync=fsync)

    def call_arguments(self, scope: Scope, owner: ProcedureOwner, call: ToolCall, at: datetime) -> tuple[str, dict[str, Any]]:
        """Return the tool's key, and the call as script arguments."""
        arguments: dict[str, Any] = {
            "fields": tool_fields(scope.tenant, owner, call.tool, at.timestamp()),
            "ok": call.success,
            "at": str(round(at.timestamp() * 1_000_000)),
            "shape": shape_of(call.arguments),
        }
        if call.success:
            arguments["example"] = example_of(call.arguments, redacts=self._redacts)
        for name, value in (("ms", call.ms), ("cost", call.cost), ("error", call.error and clean(call.error, redacts=self._redacts))):
            if value is not None:
                arguments[name] = value
        return self._procedure_keys.procedure(tool_pid(scope.tenant, owner, call.tool)), arguments

    async def count_call(self, scope: Scope, owner: ProcedureOwner, call: ToolCall, at: datetime) -> ToolMemory:
        """Count a call and return the tool's statistics."""
        key, arguments = self.call_arguments(scope, owner, call, at)
        guard = guard_of(self._keys.root, scope.tenant, owner.namespace, owner.user_id, agent_id=owner.agent_id)
        await self._write(tool=key, guard=guard, call=arguments)
        values = (await read(self._client, lambda pipe: pipe.hmget(key, *TOOL_FIELDS)))[0]
        return decode_tool({name.encode(): value for name, value in zip(TOOL_FIELDS, values, strict=True) if value is not None})

    async def list_page(self, clause: str, offset: int, limit: int) -> tuple[int, list[ToolMemory]]:
        """Return the total number of matches and a page of them, newest first."""
        query = FilterQuery(clause, return_fields=list(TOOL_FIELDS), sort_by=("c", "DESC"))
        query.paging(offset, limit)
        hits = await search(self._client, self._index, query)
        return hits.total, [decode_tool(hit.fields) for hit in hits.hits if b"d" in hit.fields]

    async def walk_fields(self, clause: str) -> AsyncIterator[tuple[str, dict[str, str]]]:
        """Yield the pid and hash fields of each matching tool."""
        async for page in walk(self._client, self._index, clause, "c"):

            def build(pipe: Pipe, names: Sequence[str] = page) -> None:
                for name in names:
                    pipe.hmget(self._procedure_keys.procedure(name), *TOOL_FIELDS, "c")

            for name, values in zip(page, await read(self._client, build), strict=True):
                fields = {field: value.decode() for field, value in zip((*TOOL_FIELDS, "c"), values, strict=True) if value is not None}
                if "d" in fields:
                    yield name, fields

    async def bring_in(self, scope: Scope, owner: ProcedureOwner, tool: str, fields: dict[str, str], imported: str) -> bool:
        """Store exported statistics. Return False if the tool already has some.

        Raises ErasureUnderWay.
        """
        key = self._procedure_keys.procedure(tool_pid(scope.tenant, owner, tool))
        own = tool_fields(scope.tenant, owner, tool, float(fields["c"]))
        values = dict(zip(own[::2], own[1::2], strict=True)) | {
            name: fields[name] for name in TOOL_FIELDS if name != "d" and name in fields
        }
        values["im"] = imported
        await self._erasures.require_none(scope.tenant, owner.namespace, owner.user_id, owner.agent_id)
        with redis_errors():
            if not await self._client.hsetnx(key, "d", values["d"]):
                return False
            await self._client.hset(key, items=[part for item in values.items() for part in item])
        return True

    @staticmethod
    def check_fields(fields: dict[str, str]) -> ToolMemory:
        """Decode exported fields. Raises ValueError, KeyError or TypeError."""
        float(fields["c"])
        json.loads(fields["d"])
        return decode_tool({name.encode(): value.encode() for name, value in fields.items()})
