"""Store session results and schedule the sessions for learning."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel
from redis.asyncio import Redis

from agent_memory.features.jobs.order_store import JobOrder, encode_order
from agent_memory.features.sessions.agent_sessions import permit_session_agents
from agent_memory.foundation.api.principals import permit_agent
from agent_memory.foundation.core.clock import from_micros, iso
from agent_memory.foundation.core.feature import RestoreTarget
from agent_memory.foundation.core.input.validation import validated
from agent_memory.foundation.core.permissions import permit_session
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.connection import read
from agent_memory.foundation.storage.erasures import guard_of
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Script, compact
from agent_memory_client.models import Instant
from agent_memory_client.models.features.procedures import SessionResult, SessionResultRequest

LEARN_SESSION = "learn_session"
"""Job: learn from a session that has a result."""


class MarkedSession(NamedTuple):
    """A session's result, as read by a worker.

    `epoch` identifies the session, and `mark` the result. `learned` describes the procedures
    learned from this result or an earlier one.
    """

    tenant: str
    epoch: str
    mark: str
    result: SessionResultRequest
    learned: Mapping[str, Any]


class _ResultLine(BaseModel):
    """A session's result in an export."""

    said: SessionResultRequest
    at: Instant
    learned: Literal["waiting", "created", "merged", "nothing"] = "waiting"


class ResultStore:
    part = "result"

    def __init__(self, client: Redis, keys: Keys, *, fsync: bool = False) -> None:
        self._client = client
        self._keys = keys
        self._mark = Script(client, "procedures/session_result", fsync=fsync)

    async def mark(self, scope: Scope, ref: SessionRef, result: SessionResultRequest) -> SessionResult | None:
        """Store a result. Return None if the session is missing. Raises Forbidden."""
        permit_session(scope, ref, write=True)
        await permit_session_agents(self._client, self._keys, scope, ref)
        sid = self._keys.sid(scope.tenant, ref)
        order = JobOrder(LEARN_SESSION, scope.tenant, {"session": sid})
        reply = await self._mark(
            meta=self._keys.session(sid).meta,
            order=self._keys.order_of_work(order.name),
            order_due=self._keys.due(DueKind.ORDER),
            order_dead=self._keys.dead(DueKind.ORDER),
            wake=self._keys.wake,
            guard=guard_of(self._keys.root, scope.tenant, ref.namespace, ref.user_id, ref.session_id, result.agent_id),
            result=compact(result.model_dump(exclude_none=True)),
            order_json=encode_order(order),
        )
        return None if reply is None else _result_of(ref, reply)

    async def load(self, scope: Scope, ref: SessionRef) -> SessionResult | None:
        """Return a session's result, if any. Raises Forbidden."""
        permit_session(scope, ref, write=False)
        meta = self._keys.session(self._keys.sid(scope.tenant, ref)).meta
        values = (await read(self._client, lambda pipe: pipe.hmget(meta, "rs", "rt", "rm", "rl")))[0]
        return None if values[0] is None else _result_of(ref, values)

    async def load_marked(self, sid: str) -> MarkedSession | None:
        """Return a session's result, or None if the session or result is missing."""
        (values,) = await read(self._client, lambda pipe: pipe.hmget(self._keys.session(sid).meta, "tn", "ep", "rm", "rs", "rl"))
        if values[1] is None or values[3] is None:
            return None
        tenant, epoch, mark, result, learned = ("" if value is None else value.decode() for value in values)
        return MarkedSession(tenant, epoch, mark, SessionResultRequest.model_validate_json(result), json.loads(learned or "{}"))

    def export_part(self, fields: Mapping[bytes, bytes]) -> dict[str, Any] | None:
        if b"rs" not in fields:
            return None
        outcome = json.loads(fields.get(b"rl", b"{}"))
        learned = outcome["what"] if outcome.get("mark") == fields[b"rm"].decode() else "waiting"
        return {"said": json.loads(fields[b"rs"]), "at": iso(from_micros(int(fields[b"rt"]))), "learned": learned}

    def restore_part(self, scope: Scope, target: RestoreTarget, part: Any, messages: int) -> Mapping[str, str]:
        """Return the hash fields for an exported result. Raises BadInput or Forbidden.

        If a worker has already learned from it, tool calls in the first `messages` messages do not
        count again.
        """
        line = validated(_ResultLine, part)
        agent_id = target.agent(line.said.agent_id)
        permit_agent(scope, agent_id)
        result_request = line.said.model_copy(update={"agent_id": agent_id})
        fields = {"rs": compact(result_request.model_dump(exclude_none=True)), "rt": str(round(line.at.timestamp() * 1_000_000)), "rm": "1"}
        return fields if line.learned == "waiting" else fields | {"rl": compact({"mark": "1", "what": line.learned, "seq": messages})}

    async def resume_part(self, scope: Scope, session: SessionRef) -> None:
        """Schedule learning from an imported session unless it was done before the export."""
        session_result = await self.load(scope, session)
        if session_result is not None and session_result.learned == "waiting":
            values = session_result.model_dump(include=set(SessionResultRequest.model_fields))
            await self.mark(scope, session, SessionResultRequest.model_validate(values))


def _result_of(ref: SessionRef, values: Any) -> SessionResult:
    result, at, mark, learned = values
    outcome: dict[str, Any] = json.loads(learned) if learned else {}
    current = bool(outcome) and outcome["mark"] == mark.decode()
    return SessionResult(
        **json.loads(result),
        session_id=ref.session_id,
        namespace=ref.namespace,
        user_id=ref.user_id,
        marked_at=from_micros(int(at)),
        learned=outcome["what"] if current else "waiting",
        procedure_id=outcome.get("id") if current else None,
    )
