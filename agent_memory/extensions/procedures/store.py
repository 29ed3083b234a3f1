"""Store procedures in Redis. Each change runs as a single script."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from redis.asyncio import Redis
from redisvl.query import FilterQuery

from agent_memory.extensions.procedures.records import (
    FIELDS,
    StoredProcedure,
    change_record,
    decode_procedure,
    pid_of,
    procedure_fields,
    words_digest,
)
from agent_memory.extensions.procedures.search_index import ProcedureKeys, procedure_index_name
from agent_memory.features.jobs.order_store import JobOrder, encode_order
from agent_memory.foundation.core.ids import made_id
from agent_memory.foundation.core.permissions import within
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.connection import Pipe, read, redis_errors
from agent_memory.foundation.storage.erasures import Guard, guard_of
from agent_memory.foundation.storage.keyspace import Keys, tag
from agent_memory.foundation.storage.scripts import Script, compact
from agent_memory.foundation.storage.search.filters import tagged
from agent_memory.foundation.storage.search.indexes import VectorSpec
from agent_memory.foundation.storage.search.pagination import walk
from agent_memory.foundation.storage.search.queries import search
from agent_memory.foundation.storage.search.syntax import all_of, negated
from agent_memory_client.models.features.procedures import Procedure, ProcedureChange, ProcedureContent, ProcedureFeedback, ProcedureHistory

INDEX_PROCEDURE = "index_procedure"
"""Job: embed a procedure's situation."""
MOST_CHANGES = 50
MOST_FEEDBACK = 100
MAX_OFFSET = 10_000
MARKS = ("o", "ss", "sc", "fa")
"""Hash fields outside the wire model: recent outcomes, sum and count of scores, feedback time."""
ChangeKind = Literal["create", "edit", "learn", "merge", "retire", "restore", "undo"]


class Change(NamedTuple):
    kind: ChangeKind
    by: str
    reason: str = ""


class IndexJob(NamedTuple):
    """A procedure that needs a new vector. `words` is the digest of its situation."""

    tenant: str
    when_to_use: str
    words: str


class ProcedureStore:
    def __init__(self, client: Redis, keys: Keys, spec: VectorSpec, *, fsync: bool = False) -> None:
        """Create the store. If `fsync` is set, callers' changes are on disk before a method returns."""
        self._client = client
        self._keys = keys
        self._procedure_keys = ProcedureKeys(keys.root)
        self._spec = spec
        self._index = procedure_index_name(keys, spec)
        self._write = Script(client, "procedures/procedure_write", fsync=fsync)
        self._feedback = Script(client, "procedures/procedure_feedback", fsync=fsync)
        self._undo = Script(client, "procedures/procedure_undo", fsync=fsync)
        self._looked = Script(client, "procedures/procedure_looked")
        self._store_vector = Script(client, "procedures/procedure_index")

    async def load(self, scope: Scope, procedure_id: str) -> StoredProcedure | None:
        """Return a procedure, or None if it is missing or inaccessible."""
        pid = pid_of(scope.tenant, procedure_id)
        return (await self.load_pids(scope, [pid]))[0]

    async def load_pids(self, scope: Scope, pids: Sequence[str]) -> list[StoredProcedure | None]:
        """Return the procedures in order, with None for missing or inaccessible ones."""

        def build(pipe: Pipe) -> None:
            for pid in pids:
                pipe.hmget(self._procedure_keys.procedure(pid), *FIELDS, "t")

        rows = await read(self._client, build) if pids else []
        loaded: list[StoredProcedure | None] = []
        for pid, values in zip(pids, rows, strict=True):
            fields = {name.encode(): value for name, value in zip((*FIELDS, "t"), values, strict=True) if value is not None}
            readable = b"v" in fields and b"d" in fields and fields[b"t"].decode() == tag(scope.tenant)
            stored = StoredProcedure(pid, decode_procedure(fields)) if readable else None
            loaded.append(stored if stored is not None and within(scope, stored.procedure) else None)
        return loaded

    async def list_page(self, clause: str, offset: int, limit: int) -> tuple[int, list[Procedure]]:
        """Return the total number of matches and a page of them, newest first."""
        query = FilterQuery(clause, return_fields=list(FIELDS), sort_by=("c", "DESC"))
        query.paging(offset, limit)
        hits = await search(self._client, self._index, query)
        return hits.total, [decode_procedure(hit.fields) for hit in hits.hits if b"d" in hit.fields and b"v" in hit.fields]

    def walk_pids(self, clause: str) -> AsyncIterator[list[str]]:
        """Yield the pids of the matching documents, page by page, oldest first."""
        return walk(self._client, self._index, clause, "c")

    async def load_history(self, pid: str) -> ProcedureHistory:
        def build(pipe: Pipe) -> None:
            pipe.lrange(self._procedure_keys.changes(pid), 0, -1)
            pipe.lrange(self._procedure_keys.feedback(pid), 0, -1)

        changes, feedback = await read(self._client, build)
        return ProcedureHistory(
            changes=[ProcedureChange.model_validate_json(change) for change in changes],
            feedback=[ProcedureFeedback.model_validate_json(entry) for entry in feedback],
        )

    def write_arguments(
        self, scope: Scope, content: ProcedureContent, former: ProcedureContent | None, vector: NDArray[np.float32] | None = None
    ) -> dict[str, Any]:
        """Return the script's arguments, except the change and the expected version.

        If the situation changed and `vector` is None, request an embedding.
        """
        pid = pid_of(scope.tenant, content.id)
        order = JobOrder(INDEX_PROCEDURE, scope.tenant, {"procedure": pid})
        changed = former is None or former.when_to_use != content.when_to_use
        unset = ["em", self._spec.field] if changed and vector is None else []
        if former is not None and former.state != "active" and content.state == "active":
            unset.append("o")  # Outcomes that have retired the procedure must not retire it again.
        fields = procedure_fields(scope.tenant, content)
        return {
            "record": self._procedure_keys.procedure(pid),
            "changes": self._procedure_keys.changes(pid),
            "order": self._keys.order_of_work(order.name),
            "order_due": self._keys.due(DueKind.ORDER),
            "order_dead": self._keys.dead(DueKind.ORDER),
            "wake": self._keys.wake,
            "fields": fields if vector is None else [*fields, "em", self._spec.digest],
            "unset": unset,
            "most_changes": MOST_CHANGES,
            "vector_field": self._spec.field,
            "vector": None if vector is None else vector.astype(self._spec.numpy_type).tobytes(),
            "order_json": encode_order(order) if changed and vector is None else None,
        }

    async def write(
        self, scope: Scope, content: ProcedureContent, change: Change, *, former: ProcedureContent | None = None, expected: int = 0
    ) -> int | None:
        """Write a procedure if its version is `expected` (0 if it is new).

        Return the new version, or None on conflict. `former` is the content before the change.
        """
        arguments = self.write_arguments(scope, content, former)
        note = change_record(change.kind, content, change.by, change.reason)
        reply = await self._write(**arguments, guard=self._guard(scope, content), expected=expected, change=note)
        return None if reply is None else int(reply)

    def _guard(self, scope: Scope, content: ProcedureContent) -> Guard:
        return guard_of(self._keys.root, scope.tenant, content.namespace, content.user_id, agent_id=content.agent_id)

    async def add_feedback(self, pid: str, feedback: ProcedureFeedback, most_outcomes: int) -> bool:
        """Record feedback. Return False if the procedure is missing.

        Only the last `most_outcomes` outcomes are kept.
        """
        name = made_id()
        entry = compact({"id": name, **feedback.model_dump(mode="json")})
        counted = await self._feedback(
            record=self._procedure_keys.procedure(pid),
            feedback=self._procedure_keys.feedback(pid),
            failing=self._procedure_keys.failing,
            guard=guard_of(self._keys.root),
            pid=pid,
            id=name,
            outcome="1" if feedback.helped else "0",
            score=None if feedback.score is None else repr(feedback.score),
            entry=entry,
            most_feedback=MOST_FEEDBACK,
            most_outcomes=most_outcomes,
        )
        return bool(counted)

    async def drop(self, pids: Sequence[str]) -> int:
        """Delete procedures or tool statistics. Return how many existed."""
        if not pids:
            return 0
        with redis_errors():
            async with self._client.pipeline(transaction=True) as pipe:
                for pid in pids:
                    pipe.delete(self._procedure_keys.procedure(pid))
                    pipe.delete(self._procedure_keys.changes(pid), self._procedure_keys.feedback(pid))
                pipe.srem(self._procedure_keys.failing, *pids)
                return sum((await pipe.execute())[:-1:2])

    async def undo_import(self, pids: Sequence[str], imported: str, *, dry_run: bool) -> int:
        """Delete imported records that have not changed, and return the count.

        A dry run only counts.
        """
        keys = self._procedure_keys
        return sum(
            [
                await self._undo(
                    record=keys.procedure(pid),
                    changes=keys.changes(pid),
                    feedback=keys.feedback(pid),
                    failing=keys.failing,
                    pid=pid,
                    imported=imported,
                    dry=dry_run,
                )
                for pid in pids
            ]
        )

    async def drop_counters(self, owners: Sequence[str]) -> None:
        """Delete the learning counters. `owners` contains digests."""
        if owners:
            with redis_errors():
                await self._client.delete(*(self._procedure_keys.learned(owner) for owner in owners))

    async def forget_changes(self, pid: str) -> None:
        """Delete a procedure's change history, which contains its earlier versions."""
        with redis_errors():
            await self._client.delete(self._procedure_keys.changes(pid))

    async def bring_in(
        self, scope: Scope, procedure: Procedure, history: ProcedureHistory, marks: Mapping[str, str], imported: str
    ) -> Literal["new", "same", "other"]:
        """Store an exported procedure with its history.

        Return "new" if stored. If the id exists, return "same" if the content matches, or else
        "other".
        """
        content = StoredProcedure("", procedure).content
        arguments = self.write_arguments(scope, content, None)
        counts = {"h": procedure.helped, "f": procedure.failed, **marks, "im": imported}
        arguments["fields"] += [str(part) for item in counts.items() for part in item]
        change = change_record("create", content, "import")
        if await self._write(**arguments, guard=self._guard(scope, content), expected=0, change=change) is None:
            existing_procedure = await self.load(scope, procedure.id)
            return "same" if existing_procedure is not None and existing_procedure.content == content else "other"
        pid = pid_of(scope.tenant, procedure.id)
        feedback = [compact({"id": made_id(), **entry.model_dump(mode="json")}) for entry in history.feedback]
        changes = [entry.model_dump_json() for entry in history.changes]
        with redis_errors():
            async with self._client.pipeline(transaction=True) as pipe:
                if feedback:
                    pipe.rpush(self._procedure_keys.feedback(pid), *feedback)
                if changes:
                    pipe.delete(self._procedure_keys.changes(pid))
                    pipe.rpush(self._procedure_keys.changes(pid), *changes)
                    pipe.hset(self._procedure_keys.procedure(pid), "v", str(procedure.version))
                await pipe.execute()
        return "new"

    async def export_marks(self, pid: str) -> dict[str, str]:
        values = (await read(self._client, lambda pipe: pipe.hmget(self._procedure_keys.procedure(pid), *MARKS)))[0]
        return {name: value.decode() for name, value in zip(MARKS, values, strict=True) if value is not None}

    # The methods below serve workers. They do not check access rights.

    async def index_job(self, pid: str) -> IndexJob | None:
        """Return a job, or None if the procedure is missing or needs no vector."""
        key = self._procedure_keys.procedure(pid)
        tenant, body, words, model = (await read(self._client, lambda pipe: pipe.hmget(key, "t", "d", "w", "em")))[0]
        if body is None or words is None or (model is not None and self._spec.digest in model.decode().split(",")):
            return None
        when_to_use = json.loads(body)["when_to_use"]
        assert words.decode() == words_digest(when_to_use)
        return IndexJob(bytes.fromhex(tenant.decode()).decode(), when_to_use, words.decode())

    async def store_vector(self, pid: str, job: IndexJob, vector: NDArray[np.float32] | None) -> bool:
        """Store a vector. Return False if the procedure is missing or its situation has changed.

        If `vector` is None, only record the embedding attempt.
        """
        return bool(
            await self._store_vector(
                record=self._procedure_keys.procedure(pid),
                words=job.words,
                model=self._spec.digest,
                vector_field=self._spec.field,
                vector=None if vector is None else vector.astype(self._spec.numpy_type).tobytes(),
            )
        )

    async def failing(self, limit: int) -> list[tuple[str, str, str]]:
        """Return procedures with unchecked failures, as (tenant, pid, latest outcomes).

        The tenant is "" if the procedure was deleted.
        """
        names = self._procedure_keys.failing
        pids = [pid.decode() for pid in (await read(self._client, lambda pipe: pipe.srandmember(names, limit)))[0]]

        def build(pipe: Pipe) -> None:
            for pid in pids:
                pipe.hmget(self._procedure_keys.procedure(pid), "t", "o")

        rows = await read(self._client, build) if pids else []
        texts = [["" if value is None else value.decode() for value in row] for row in rows]
        return [(bytes.fromhex(tenant).decode(), pid, outcomes) for pid, (tenant, outcomes) in zip(pids, texts, strict=True)]

    async def note_looked(self, pid: str, outcomes: str) -> None:
        """Mark failures as checked, unless the outcomes have changed since."""
        await self._looked(record=self._procedure_keys.procedure(pid), failing=self._procedure_keys.failing, pid=pid, outcomes=outcomes)

    async def unembedded(self, limit: int) -> list[tuple[str, str]]:
        """Return procedures that have no vector from the current model, as (tenant, pid)."""
        clause = all_of(tagged("kd", [tag("procedure")]), negated(tagged("em", [self._spec.digest])))
        query = FilterQuery(clause, return_fields=["t"])
        query.paging(0, limit)
        hits = (await search(self._client, self._index, query)).hits
        return [(bytes.fromhex(hit.fields[b"t"].decode()).decode(), hit.mid) for hit in hits if b"t" in hit.fields]
