"""Restore exported memories and changes without altering their content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
from redis.asyncio import Redis

from agent_memory.features.memories.duplicates.store import REMEMBERED_SECONDS
from agent_memory.features.memories.records import WORDS, StoredMemory, evidence_of, memory_digest, memory_fields, owner_name, standing_of
from agent_memory.features.memories.steps import MemoryScripts, StepGroups, evidence_field, order_of
from agent_memory.features.transfer.memory_export import MemoryExport, Version
from agent_memory.foundation.core.permissions import permit_writing
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.erasures import guard_of
from agent_memory.foundation.storage.keyspace import Keys, digest, tag
from agent_memory.foundation.storage.scripts import Arg, Script, outbox_keys
from agent_memory.foundation.storage.search.indexes import VectorSpec
from agent_memory.foundation.text.retrieval_units import REACH, unit_terms
from agent_memory_client.models import MemoryTypeEnum

# The maximum difference of a vector's length from 1.
_LENGTH = 0.05


class Restorer:
    def __init__(self, client: Redis, keys: Keys, scripts: MemoryScripts, spec: VectorSpec, *, fsync: bool = False) -> None:
        self._scripts = scripts
        self._keys = keys
        self._spec = spec
        self._memories = Script(client, "transfer/memory_restore", fsync=fsync)
        self._changes = Script(client, "transfer/change_restore", fsync=fsync)

    def mid(self, scope: Scope, memory_id: str) -> str:
        return self._keys.mid(scope.tenant, memory_id)

    async def restore(
        self, scope: Scope, memories: Sequence[MemoryExport], *, dedupe: bool = True, source: str = "import", buries: bool = False
    ) -> list[str]:
        """Restore memories. Return "new", "same", "other" or "slot" for each memory.

        "slot" means that another fact fills the memory's slot. If `dedupe` is true, the result can
        also be "twin <mid>". If `buries` is true, memories that were deleted here are not restored,
        and the result is "buried".

        Existing memories do not change. Vectors must come from this store's model. `source` is
        stored for purges. Raises Forbidden.
        """
        permit_writing(
            scope, [version.record for memory in memories for version in (*memory.versions, *([memory.now] if memory.now else []))]
        )
        states = await self._write(scope, memories, source, dedupe=dedupe, buries=buries)
        steps = StepGroups(self._keys, scope.tenant, atomic=False)
        new = [
            memory.now.record
            for memory, state in zip(memories, states, strict=True)
            if state == "new" and memory.now and memory.state == "current"
        ]
        takes = [step for record in new if (step := steps.absorb_messages(record)) is not None]
        for step in takes:
            steps.add_group(step)
        if takes:
            await steps.run_steps(self._scripts)
        return states

    async def _write(self, scope: Scope, memories: Sequence[MemoryExport], source: str, *, dedupe: bool, buries: bool) -> list[str]:
        if not memories:
            return []
        values: list[Arg] = []
        items = [self._item(scope, memory, values, tag(source), dedupe=dedupe) for memory in memories]
        reply = await self._memories(
            **outbox_keys(self._keys, DueKind.MEMORY),
            wake=self._keys.wake,
            root=self._keys.root,
            vector_field=self._spec.field,
            uncompared=self._keys.uncompared(scope.tenant),
            unmerged=self._keys.unmerged(scope.tenant),
            kept_seconds=REMEMBERED_SECONDS,
            reach=REACH,
            buries=buries,
            guard=guard_of(self._keys.root),
            items=items,
            values=values,
        )
        return [state.decode() for state in reply]

    async def fold(self, scope: Scope, memory: MemoryExport, into: StoredMemory, source: str) -> None:
        """Merge a memory into one that says the same thing, keeping its history. Idempotent."""
        assert memory.now is not None
        record = memory.now.record
        retired = Version(
            record,
            {**memory.now.marks, "rt": f"{datetime.now(UTC).timestamp():.6f}"},
            memory.now.position,
            memory.now.terms,
            memory.now.vector,
        )
        await self.restore(scope, [MemoryExport("gone", None, [*memory.versions, retired])], source=source)
        steps = StepGroups(self._keys, scope.tenant, atomic=False)
        for piece in (*evidence_of(record), *memory.evidence):
            steps.add_group(steps.add_evidence(into, piece, alias=record))
        for name, dig in memory.aliases:
            steps.add_group(steps.add_alias(into, name, dig))
        await steps.run_steps(self._scripts)

    def _item(self, scope: Scope, memory: MemoryExport, values: list[Arg], source: str, *, dedupe: bool) -> dict[str, Any]:
        item: dict[str, Any] = {"mid": self.mid(scope, memory.id), "owner": owner_name(memory.any), "state": memory.state}
        if memory.now is not None:
            record = memory.now.record
            standing = standing_of(scope.tenant, record)
            digest = memory.now.marks.get("h") or memory_digest(record)
            item |= {
                "version": memory.now.marks["n"],
                "digest": digest,
                "fact": record.memory_type is not MemoryTypeEnum.MESSAGE,
                "scope": standing.scope,
                **({"slot": standing.slot} if standing.slot else {}),
            }
            if dedupe and record.quarantine is None:
                item["words"] = list(dict.fromkeys([WORDS + standing.words[1:], standing.words]))
            vector = memory.now.vector
            item |= self._fields(scope, memory.now, values, source, vector if memory.state == "over" else None)
            if memory.state == "current" and vector is not None:
                item["vector"] = len(values)
                values.append(vector)
            elif vector is not None:
                item["vector"] = True
            order = order_of(self._keys, scope.tenant, record)
            if order is not None and memory.now.position is not None:
                item |= {"order": order, "score": memory.now.position}
        item["versions"] = [
            {"version": old.marks["n"], "bare": old.vector is None, **self._fields(scope, old, values, source, old.vector)}
            for old in sorted(memory.versions, key=lambda version: int(version.marks["n"]))
        ]
        item["aliases"] = [[self.mid(scope, name), dig] for name, dig in memory.aliases]
        item["evidence"] = [
            part
            for piece in memory.evidence
            for part in (evidence_field(self._keys, scope.tenant, memory.any, piece), piece.model_dump_json(exclude_none=True))
        ]
        return item

    def _fields(self, scope: Scope, version: Version, values: list[Arg], source: str, vector: bytes | None) -> dict[str, int]:
        record = version.record
        fields = memory_fields(scope.tenant, record, version.terms or unit_terms(record))
        flat: list[Arg] = [*fields.flat(), "bk", str(standing_of(scope.tenant, record))]
        flat += [part for name, value in version.marks.items() for part in (name, value)]
        flat += ["im", source]
        if "h" not in version.marks:
            flat += ["h", fields.digest]
        order = order_of(self._keys, scope.tenant, record)
        if "rt" in version.marks and order is not None and version.position is not None:
            flat += ["ok", order, "os", version.position]
        if vector is not None:
            flat += [self._spec.field, vector]
        position = len(values)
        values += flat
        return {"fields": position, "count": len(flat)}

    async def restore_change(
        self, scope: Scope, owner: tuple[str | None, str], change_id: str, fields: Sequence[str], mids: Sequence[str], at: float
    ) -> Literal["new", "same", "other"]:
        """Restore a change for an owner (namespace, user).

        Return "new", "same" if the change already exists, or "other" if a different change has its
        id. If another tenant uses the id, the change gets a new one. All memories in the change
        must exist, and `fields` must begin with the tenant.
        """
        change, root, micros = self._keys.change(change_id), self._keys.root, round(at * 1e6)
        guard = guard_of(root, scope.tenant, *owner)
        reply = await self._changes(change=change, root=root, id=change_id, at=micros, mids=" ".join(mids), guard=guard, fields=fields)
        done = int(reply)
        if done == -2:
            return await self.restore_change(scope, owner, digest("change", scope.tenant, change_id), fields, mids, at)
        return "new" if done > 0 else "other" if done else "same"

    def vector(self, raw: bytes, model: Mapping[str, Any]) -> bytes | None:
        """Convert an exported vector to this store's format, or return None if it is unusable."""
        if (model.get("model"), model.get("dimensions")) != (self._spec.model, self._spec.dimensions):
            return None
        kind = model.get("datatype")
        if kind not in ("FLOAT16", "FLOAT32", "FLOAT64") or len(raw) != np.dtype(str(kind).lower()).itemsize * self._spec.dimensions:
            return None
        numbers = np.frombuffer(raw, dtype=str(kind).lower()).astype(np.float64)
        if not np.isfinite(numbers).all() or abs(float(np.linalg.norm(numbers)) - 1.0) > _LENGTH:
            return None
        return raw if kind == self._spec.datatype else numbers.astype(self._spec.numpy_type).tobytes()
