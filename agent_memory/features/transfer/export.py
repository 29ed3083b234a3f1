"""Export all of a user's or an agent's data as JSON Lines."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from redis.asyncio import Redis
from ulid import ULID

from agent_memory import __version__
from agent_memory.features.access import audit
from agent_memory.features.jobs.erasure_orders import Erasure
from agent_memory.features.sessions.codec import StoredMessage, beside_of
from agent_memory.features.transfer.change_export import ChangeExport, ChangeTransfer
from agent_memory.features.transfer.memory_export import MemoryExport, MemoryExportReader, Version
from agent_memory.features.transfer.session_export import SessionExport, SessionExportReader
from agent_memory.foundation.api.principals import list_place_of, whole_agent
from agent_memory.foundation.core.clock import iso
from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.foundation.core.feature import AgentExporter, AgentOwner, Exporter, Owner
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import read, redis_errors
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.search.indexes import SCHEMA_VERSION, VectorSpec
from agent_memory_client.models import EXPORT_FORMAT, EXPORT_VERSION, OperationKind, OperationRecord, OperationState

log = get_logger(__name__)

Line = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ExportService:
    memories: MemoryExportReader
    changes: ChangeTransfer
    sessions: SessionExportReader
    others: Sequence[Exporter]
    spec: VectorSpec
    exports: ExportStore
    audits: bool

    async def begin(
        self, scope: Scope, namespace: str | None, user_id: str | None, agent_id: str | None = None
    ) -> tuple[str, AsyncGenerator[bytes]]:
        """Start exporting a user or an agent. Return the operation id and the lines.

        The export contains all data acknowledged before the call. It is complete only if the last
        line contains the number of the other lines. Raises Forbidden.
        """
        if agent_id is None:
            namespace, _ = list_place_of(scope, namespace, user_id)
        else:
            namespace, user_id = whole_agent(scope, namespace, agent_id), None
        operation_id = await self.exports.begin(scope)
        return operation_id, self._encoded_lines(scope, Erasure(scope.tenant, namespace, user_id, None, agent_id), operation_id)

    async def _encoded_lines(self, scope: Scope, erasure: Erasure, operation_id: str) -> AsyncGenerator[bytes]:
        counts: Counter[str] = Counter()
        ended = False
        try:
            async for lines in self._pages(scope, erasure, operation_id):
                if not lines:
                    continue
                counts.update(line["kind"] for line in lines)
                yield b"".join(map(_encode_line, lines))
            yield _encode_line({"kind": "end", "lines": counts.total(), "counts": dict(counts)})
            ended = True
            await self.exports.note(scope, operation_id, OperationState.DONE, counts)
            self._audit(scope, erasure, operation_id, counts)
        finally:
            if not ended:
                await self._note_failure(scope, operation_id, counts)

    def _audit(self, scope: Scope, erasure: Erasure, operation_id: str, counts: Mapping[str, int]) -> None:
        if self.audits:
            ids = {"user_id": erasure.user_id, "namespace": erasure.namespace, "operation_id": operation_id}
            ids["agent_id"] = erasure.agent_id
            named = {name: value for name, value in ids.items() if value is not None}
            audit.record(operation="export", status=None, tenant=scope.tenant, actor=scope.actor, ids=named, request_id=None, counts=counts)

    async def _note_failure(self, scope: Scope, operation_id: str, counts: Counter[str]) -> None:
        try:
            await self.exports.note(scope, operation_id, OperationState.DEAD, counts, "it did not finish: export again")
        except RedisUnavailable as error:
            log.warning("cannot record the failure of an export", tenant=scope.tenant, operation_id=operation_id, error=error)

    async def _pages(self, scope: Scope, erasure: Erasure, operation_id: str) -> AsyncIterator[list[Line]]:
        """Yield all lines, with memories before sessions, because imports depend on this order.

        Memories that change during the export appear again at the end.
        """
        user = erasure.user_id or ""
        began = await self.memories.now()
        yield [self._header(erasure, operation_id)]
        if erasure.agent_id is not None:
            async for lines in self._agent_pages(scope, erasure, erasure.agent_id, began):
                yield lines
            return
        # Rules come first, because they decide how an import extracts later messages.
        for exporter in self.others:
            yield [line async for line in exporter.export_lines(scope, Owner(erasure.namespace, user))]
        async for memories in self.memories.pages(scope, erasure, began):
            yield [memory_line(memory) for memory in memories]
        async for changes in self.changes.pages(scope, erasure, began):
            yield [change_line(change) for change in changes]
        async for sessions in self.sessions.pages(scope, erasure.namespace, user):
            yield [session_line(session) for session in sessions]
        async for memories in self.memories.changed_since(scope, erasure, began):
            yield [memory_line(memory) for memory in memories]

    async def _agent_pages(self, scope: Scope, erasure: Erasure, agent_id: str, began: int) -> AsyncIterator[list[Line]]:
        for exporter in self.others:
            if isinstance(exporter, AgentExporter):
                yield [line async for line in exporter.export_agent(scope, AgentOwner(erasure.namespace, agent_id))]
        async for memories in self.memories.pages(scope, erasure, began):
            yield [memory_line(memory) for memory in memories]
        async for sessions in self.sessions.agent_pages(scope, erasure.namespace, agent_id):
            erasures = [Erasure(scope.tenant, ref.namespace, ref.user_id, ref.session_id) for ref in (session.ref for session in sessions)]
            for each in erasures:
                async for memories in self.memories.pages(scope, each, began):
                    yield [memory_line(memory) for memory in memories if memory.any.agent_id != agent_id]
            yield [{**session_line(session), "user_id": session.ref.user_id} for session in sessions]
            for each in erasures:
                async for memories in self.memories.changed_since(scope, each, began):
                    yield [memory_line(memory) for memory in memories]
        async for memories in self.memories.changed_since(scope, erasure, began):
            yield [memory_line(memory) for memory in memories]

    def _header(self, erasure: Erasure, operation_id: str) -> Line:
        spec = self.spec
        agent = {} if erasure.agent_id is None else {"agent_id": erasure.agent_id}
        return {
            "kind": "header",
            "format": EXPORT_FORMAT,
            "version": EXPORT_VERSION,
            "server": __version__,
            "terms": SCHEMA_VERSION,
            "at": iso(datetime.now(UTC)),
            "user_id": erasure.user_id,
            "namespace": erasure.namespace,
            "operation_id": operation_id,
            "embedding": {"model": spec.model, "dimensions": spec.dimensions, "datatype": spec.datatype},
            **agent,
        }


def _encode_line(line: Line) -> bytes:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _version(version: Version) -> dict[str, Any]:
    line: dict[str, Any] = {"record": version.record.model_dump(mode="json"), "marks": dict(version.marks)}
    vector = None if version.vector is None else base64.b64encode(version.vector).decode()
    optional = {"place": version.position, "terms": version.terms, "vector": vector}
    return line | {name: value for name, value in optional.items() if value is not None}


def memory_line(memory: MemoryExport) -> Line:
    line: dict[str, Any] = {"kind": "memory", "id": memory.id, "state": memory.state}
    if memory.now is not None:
        line["now"] = _version(memory.now)
    parts: Iterable[tuple[str, list[Any]]] = (
        ("versions", [_version(version) for version in memory.versions]),
        ("aliases", [list(alias) for alias in memory.aliases]),
        ("evidence", [piece.model_dump(mode="json", exclude_none=True) for piece in memory.evidence]),
    )
    return line | {name: values for name, values in parts if values}


def change_line(export: ChangeExport) -> Line:
    change = export.change
    line: dict[str, Any] = {"kind": "change", "id": change.id, "what": change.kind.value, "state": change.state, "batch": change.batch}
    line |= {"at": iso(change.at), "origin": change.origin, "namespace": export.namespace, "memories": list(export.memories)}
    return line | {"lines": [list(words) for words in export.lines]} | ({} if change.proposal is None else {"proposal": change.proposal})


def session_line(session: SessionExport) -> Line:
    line: dict[str, Any] = {
        "kind": "waiting" if session.ended else "session",
        "session_id": session.ref.session_id,
        "namespace": session.ref.namespace,
        "messages": [_message(stored, session) for stored in session.messages],
        "memories": list(session.memories),
        "strategy": session.strategy.model_dump(mode="json"),
    }
    state = session.state
    if state is not None:
        times = ("created_at", "updated_at", "last_accessed")
        line |= {name: iso(getattr(state, name)) for name in times}
        line |= {"context": state.context, "data": state.data, "ttl_seconds": state.ttl_seconds, "seconds_left": session.seconds_left}
        line |= {"tokens": state.client_tokens, "window": state.window}
        if state.agent_id is not None:
            line["agent_id"] = state.agent_id
        line |= session.parts
    return line


def _message(stored: StoredMessage, session: SessionExport) -> dict[str, Any]:
    message = stored.message
    promoted = stored.promote and stored.seq <= session.promoted
    persisted = message.persisted_at
    if persisted is None and promoted and session.state is not None:
        persisted = session.state.promoted_at
    line: dict[str, Any] = {"id": message.id, "role": message.role, "content": message.content, "created_at": iso(message.created_at)}
    if beside_of(message):
        line["chat"] = message.to_chat()
    if persisted is not None:
        line["persisted_at"] = iso(persisted)
    flags = {
        "extracted": message.discrete_memory_extracted == "t" or stored.seq <= session.extracted,
        "promoted": promoted,
        "waits": stored.promote and stored.seq > min(session.promoted, session.extracted),
    }
    if message.written_by is not None:
        line["written_by"] = message.written_by
    return line | {name: True for name, holds in flags.items() if holds}


_LIFETIME_SECONDS = 30 * 24 * 3600
_PREFIX = f"{OperationKind.EXPORT}-"


class ExportStore:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    async def begin(self, scope: Scope) -> str:
        """Record the start of an export, and return its operation id."""
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
        """Return an export's operation record, or None if the tenant has no such export."""
        if not operation_id.startswith(_PREFIX):
            return None
        key = self._keys.export(operation_id.removeprefix(_PREFIX))
        raw = (await read(self._client, lambda pipe: pipe.get(key)))[0]
        body = {} if raw is None else json.loads(raw)
        if body.get("tn") != scope.tenant:
            return None
        state = OperationState(body["state"])
        return OperationRecord(id=operation_id, kind=OperationKind.EXPORT, state=state, reason=body["why"], stages=body["counts"])
