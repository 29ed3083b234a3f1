"""Writing what an export says of memories and their changes, as it was there: ids, dates, versions, evidence, other names, vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
from redis.asyncio import Redis

from agent_memory.scope import Scope
from agent_memory.storage.dossiers import Dossier, Version
from agent_memory.storage.indexes import VectorSpec
from agent_memory.storage.keys import Keys, tag
from agent_memory.storage.lua import Arg, Script, Scripts, compact
from agent_memory.storage.owner_scripts import owner_name
from agent_memory.storage.reach import permit_writing
from agent_memory.storage.records import WORDS, Found, evidence_of, memory_digest, memory_fields, standing
from agent_memory.storage.restore_scripts import CHANGE_RESTORE, MEMORY_RESTORE
from agent_memory.storage.steps import Steps, evidence_field, order_of
from agent_memory.tasks import DueKind
from agent_memory.units import unit_terms

_TOMBSTONE_SECONDS = 30 * 24 * 3600
# Vectors of another length are none of a model's.
_LENGTH = 0.05


class Restorer:
    """Writes dossiers and changes."""

    def __init__(self, client: Redis, keys: Keys, scripts: Scripts, spec: VectorSpec, *, fsync: bool = False) -> None:
        self._scripts = scripts
        self._keys = keys
        self._spec = spec
        self._memories = Script(client, MEMORY_RESTORE, fsync=fsync)
        self._changes = Script(client, CHANGE_RESTORE, fsync=fsync)

    def mid(self, scope: Scope, memory_id: str) -> str:
        """The name in keys of a memory."""
        return self._keys.mid(scope.tenant, memory_id)

    async def restore(self, scope: Scope, dossiers: Sequence[Dossier], *, dedupe: bool = True, source: str = "import") -> list[str]:
        """Brings memories back in one step: "new", "same", "other" or "slot" (what is here stays), and with `dedupe` "twin <mid>" for what
        has the words of a memory that is here. Raises Forbidden for what is out of reach.

        Messages that have the words of a statement become its evidence. The vectors are of this store's model; what has none is embedded
        by a worker. `source` is noted with each: see `storage/lineage.py`.
        """
        permit_writing(scope, [version.record for one in dossiers for version in (*one.versions, *([one.now] if one.now else []))])
        args: list[Arg] = []
        items = [self._item(scope, one, args, tag(source), dedupe=dedupe) for one in dossiers]
        k = self._keys
        header = {"root": k.root, "field": self._spec.field, "seconds": _TOMBSTONE_SECONDS, "items": items}
        keys = [get(DueKind.MEMORY) for get in (k.due, k.tries, k.why, k.dead)]
        reply = await self._memories([*keys, k.wake], [compact(header), *args]) if items else []
        states = [state.decode() for state in reply]
        steps = Steps(k, scope.tenant, atomic=False)
        new = [one.now.record for one, state in zip(dossiers, states, strict=True) if state == "new" and one.now and one.state == "current"]
        takes = [step for record in new if (step := steps.absorb(record)) is not None]
        for step in takes:
            steps.group(step)
        if takes:
            await steps.run(self._scripts)
        return states

    async def fold(self, scope: Scope, one: Dossier, into: Found, source: str) -> None:
        """Brings in what is the same as a memory that is here (`into`): as evidence of it and other names of it, with its own history.

        Done twice, the second time changes nothing.
        """
        assert one.now is not None
        record = one.now.record
        retired = Version(
            record, {**one.now.marks, "rt": f"{datetime.now(UTC).timestamp():.6f}"}, one.now.place, one.now.terms, one.now.vector
        )
        await self.restore(scope, [Dossier("gone", None, [*one.versions, retired])], source=source)
        steps = Steps(self._keys, scope.tenant, atomic=False)
        for piece in (*evidence_of(record), *one.evidence):
            steps.group(steps.evidence(into, piece, alias=record))
        for name, dig in one.aliases:
            steps.group(steps.also_named(into, name, dig))
        await steps.run(self._scripts)

    def _item(self, scope: Scope, one: Dossier, args: list[Arg], source: str, *, dedupe: bool) -> dict[str, Any]:
        item: dict[str, Any] = {"mid": self.mid(scope, one.id), "own": owner_name(one.any), "state": one.state}
        if one.now is not None:
            record = one.now.record
            stands = standing(scope.tenant, record)
            given = one.now.marks.get("h") or memory_digest(record)
            item |= {"n": one.now.marks["n"], "h": given, "sc": stands.scope, **({"slot": stands.slot} if stands.slot else {})}
            if dedupe and record.quarantine is None:
                item["names"] = list(dict.fromkeys([WORDS + stands.words[1:], stands.words]))
            vector = one.now.vector
            item |= self._fields(scope, one.now, args, source, vector if one.state == "over" else None)
            if one.state == "current" and vector is not None:
                args.append(vector)
                item["vector"] = len(args) + 1
            elif vector is not None:
                item["vector"] = True
            order = order_of(self._keys, scope.tenant, record)
            if order is not None and one.now.place is not None:
                item |= {"order": order, "place": one.now.place}
        item["versions"] = [
            {"n": old.marks["n"], "bare": old.vector is None, **self._fields(scope, old, args, source, old.vector)}
            for old in sorted(one.versions, key=lambda version: int(version.marks["n"]))
        ]
        item["aliases"] = [[self.mid(scope, name), dig] for name, dig in one.aliases]
        item["evidence"] = [
            part
            for piece in one.evidence
            for part in (evidence_field(self._keys, scope.tenant, one.any, piece), piece.model_dump_json(exclude_none=True))
        ]
        return item

    def _fields(self, scope: Scope, version: Version, args: list[Arg], source: str, vector: bytes | None) -> dict[str, int]:
        record = version.record
        fields = memory_fields(scope.tenant, record, version.terms or unit_terms(record))
        flat: list[Arg] = [*fields.flat(), "bk", str(standing(scope.tenant, record))]
        flat += [part for name, value in version.marks.items() for part in (name, value)]
        flat += ["im", source]
        if "h" not in version.marks:
            flat += ["h", fields.digest]
        order = order_of(self._keys, scope.tenant, record)
        if "rt" in version.marks and order is not None and version.place is not None:
            flat += ["ok", order, "os", version.place]
        if vector is not None:
            flat += [self._spec.field, vector]
        first = len(args) + 2
        args += flat
        return {"first": first, "count": len(flat)}

    async def restore_change(
        self, scope: Scope, change_id: str, fields: Sequence[str], mids: Sequence[str], at: float
    ) -> Literal["new", "same", "other"]:
        """Brings a change back, which names versions that are here. `fields` begin with the tenant's."""
        args: list[Arg] = [self._keys.root, change_id, round(at * 1e6), " ".join(mids), *fields]
        done = int(await self._changes([self._keys.change(change_id)], args))
        return "new" if done > 0 else "other" if done else "same"

    def vector(self, raw: bytes, model: Mapping[str, Any]) -> bytes | None:
        """A vector of an export as this store keeps it; None when it is another model's, or none that a model makes."""
        if (model.get("model"), model.get("dimensions")) != (self._spec.model, self._spec.dimensions):
            return None
        kind = model.get("datatype")
        if kind not in ("FLOAT16", "FLOAT32", "FLOAT64") or len(raw) != np.dtype(str(kind).lower()).itemsize * self._spec.dimensions:
            return None
        found = np.frombuffer(raw, dtype=str(kind).lower()).astype(np.float64)
        if not np.isfinite(found).all() or abs(float(np.linalg.norm(found)) - 1.0) > _LENGTH:
            return None
        return raw if kind == self._spec.datatype else found.astype(self._spec.numpy_type).tobytes()
