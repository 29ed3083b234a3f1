"""Repair of memories whose record says another id than the one that their keys are made of, as a former version stored them.

MCP's `create_long_term_memories` without ids wrote one id into the records of many memories. Their keys are digests of the ids they were
meant to have, which nobody was told: each gets an id made of its key, and keys that belong to that id.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

from pydantic_core import from_json, to_json
from redis.asyncio import Redis
from ulid import ULID

from agent_memory.core.task_kinds import DueKind
from agent_memory.memories.codec import decode_memory
from agent_memory.memories.steps import order_of
from agent_memory.storage.connection import Pipe, read, redis_errors
from agent_memory.storage.keyspace import Keys, untag
from agent_memory.storage.scripts import Arg, Script, outbox_keys

log = logging.getLogger(__name__)

_BATCH = 500
_LOOKED = "identities"


class IdentityRepair:
    """Finds and repairs such memories."""

    def __init__(self, client: Redis, keys: Keys, *, fsync: bool = False) -> None:
        self._client = client
        self._keys = keys
        self._rename = Script(client, "memories/memory_rename", fsync=fsync)

    async def repair_until_clean(self) -> int:
        """Repairs what there is, unless a former look at the whole store found nothing; returns how many memories were repaired."""
        with redis_errors():
            looked = await self._client.hexists(self._keys.config, _LOOKED)
        if looked:
            return 0
        repaired = await self.repair_identities()
        if repaired:
            log.warning("%d memories had an id that was not theirs and got one of their own", repaired)
        else:
            with redis_errors():
                await self._client.hset(self._keys.config, _LOOKED, "1")
        return repaired

    async def repair_identities(self) -> int:
        """Looks at every memory and version, a scan in batches; returns how many memories were repaired."""
        broken: dict[str, str] = {}
        for prefix in (self._keys.memory_prefix, self._keys.history_prefix):
            async for names in self._names(prefix):
                broken.update(await self._strangers(prefix, names))
        return sum([await self._repair(tenant, mid) for mid, tenant in broken.items()])

    async def _names(self, prefix: str) -> AsyncIterator[list[str]]:
        batch: list[str] = []
        with redis_errors():
            async for key in self._client.scan_iter(match=prefix + "*", count=_BATCH):
                batch.append(key.decode().removeprefix(prefix))
                if len(batch) >= _BATCH:
                    yield batch
                    batch = []
        yield batch

    async def _strangers(self, prefix: str, names: Sequence[str]) -> dict[str, str]:
        """The memories among these documents whose record has an id of other keys, each with its tenant."""
        if not names:
            return {}
        rows = await read(self._client, lambda pipe: [pipe.hmget(prefix + name, ["t", "j"]) for name in names])
        strangers: dict[str, str] = {}
        for name, (owner, raw) in zip(names, rows, strict=True):
            if owner is None or raw is None:
                continue
            mid, tenant = name.partition(".")[0], untag(owner.decode())
            try:
                memory_id = from_json(raw)["id"]
            except (ValueError, KeyError, TypeError):
                log.warning("the record of memory %s cannot be read: it is left as it is", mid)
                continue
            if self._keys.mid(tenant, memory_id) != mid:
                strangers[mid] = tenant
        return strangers

    async def _repair(self, tenant: str, mid: str) -> bool:
        documents = await self._documents(mid)
        if not documents:
            return False
        name = bytearray.fromhex(mid)
        name[0] &= 127  # the times of ULIDs end before their first bit
        new = str(ULID(bytes(name)))
        read_documents: list[Arg] = []
        for kind, raw in documents:
            body: dict[str, Any] = from_json(raw)
            read_documents += [kind, raw, to_json({**body, "id": new})]
        renamed = await self._rename(
            **outbox_keys(self._keys, DueKind.MEMORY),
            wake=self._keys.wake,
            root=self._keys.root,
            old=mid,
            new=self._keys.mid(tenant, new),
            order=order_of(self._keys, tenant, decode_memory(documents[0][1])),
            documents_read=read_documents,
        )
        return bool(renamed)

    async def _documents(self, mid: str) -> list[tuple[str, bytes]]:
        """The records of a memory, its current one first, as `memory_rename.lua` names them."""
        k = self._keys

        def build(pipe: Pipe) -> None:
            pipe.zrange(k.ledger(mid), 0, -1)
            pipe.hget(k.memory(mid), "j")
            pipe.hget(k.history(mid), "j")

        ledger, current, over = await read(self._client, build)
        documents = [(kind, raw) for kind, raw in (("m", current), ("h", over)) if raw is not None]
        versions = [member.decode() for member in ledger if member.isdigit()]
        if versions:
            rows = await read(self._client, lambda pipe: [pipe.hget(k.history(f"{mid}.{version}"), "j") for version in versions])
            documents += [(version, raw) for version, raw in zip(versions, rows, strict=True) if raw is not None]
        return documents
