"""Implement the API operations for procedures and tool calls."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from agent_memory.extensions.procedures.helpfulness import RECENT_OUTCOMES
from agent_memory.extensions.procedures.records import StoredProcedure
from agent_memory.extensions.procedures.search import ProcedureSearch, owned_by, procedures_of
from agent_memory.extensions.procedures.store import Change, ProcedureStore
from agent_memory.extensions.procedures.tool_calls.store import ToolStore, tools_of
from agent_memory.extensions.procedures.tool_calls.traces import ToolCall
from agent_memory.foundation.api.principals import administering, list_place_of, permit_agent, place_of, resolve_name, writing
from agent_memory.foundation.core.errors import BadInput, Conflict, NotFound, VersionMismatch
from agent_memory.foundation.core.ids import made_id
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.storage.connection import PipelineReader
from agent_memory.foundation.text.injection import suspicion
from agent_memory_client.models import AckResponse, is_blank
from agent_memory_client.models.features import procedures as wire

_LISTS = frozenset({"steps", "tools", "pitfalls"})
# Maximum attempts for a change. A concurrent change makes another attempt necessary.
_ATTEMPTS = 5


class ProcedureService:
    def __init__(
        self, settings: Settings, store: ProcedureStore, tools: ToolStore, search: ProcedureSearch, reader: PipelineReader
    ) -> None:
        self._settings = settings
        self._store = store
        self._tools = tools
        self._search = search
        self._read = reader

    async def create(self, scope: Scope, body: wire.CreateProcedureRequest) -> wire.Procedure:
        """Store a procedure under a new id. Raises Forbidden."""
        owner = owner_of(writing(scope), body)
        now = datetime.now(UTC)
        content = wire.ProcedureContent(
            **body.model_dump(exclude={"user_id", "agent_id", "namespace"}),
            **owner.model_dump(),
            id=made_id(),
            created_at=now,
            updated_at=now,
        )
        content = screened(self._settings, content)
        version = await self._store.write(scope, content, Change("create", scope.actor))
        if version is None:
            # The id exists, because a request that is repeated with its Idempotency-Key gets the same id.
            return (await self._get(scope, content.id)).procedure
        return wire.Procedure(**content.model_dump(), version=version)

    async def get(self, scope: Scope, procedure_id: str) -> wire.Procedure:
        """Return a procedure. Raises NotFound."""
        return (await self._get(scope, procedure_id)).procedure

    async def list(
        self, scope: Scope, owner: wire.ProcedureOwner, *, state: wire.ProcedureState | None, offset: int, limit: int
    ) -> wire.ProcedureListResponse:
        """Return a page of procedures, newest first. Raises Forbidden.

        The names in `owner` must match.
        """
        clause = owned_by(procedures_of(scope, state=state), resolve_owner(scope, owner))
        total, procedures = await self._store.list_page(clause, offset, limit)
        return wire.ProcedureListResponse(procedures=procedures, total=total)

    async def update(self, scope: Scope, procedure_id: str, body: wire.UpdateProcedureRequest, *, if_match: str | None) -> wire.Procedure:
        """Change the fields that the body sets. Null clears `steps`, `text`, `tools` and `pitfalls`.

        Raises NotFound, VersionMismatch, Conflict or Forbidden. Raises BadInput if the change would leave neither steps
        nor text. Only administrators can approve a quarantined procedure.
        """
        updates = _updates_of(body)

        def edited(content: wire.ProcedureContent) -> wire.ProcedureContent:
            new = content.model_copy(update=updates)
            if not {"steps", "text"}.isdisjoint(updates) and not new.steps and is_blank(new.text or ""):
                raise BadInput("give steps or a text: a procedure must say what to do", field="steps")
            if content.state == "quarantined" and updates.get("state") == "active":
                administering(scope)
                return new
            return new if new == content else screened(self._settings, new)

        kind = "retire" if body.state == "retired" else "restore" if body.state == "active" else "edit"
        for _ in range(_ATTEMPTS):
            stored = await self._get(writing(scope), procedure_id)
            if if_match not in (None, "*", str(stored.procedure.version)):
                raise VersionMismatch(f"the procedure has version {stored.procedure.version}: read it again and send its ETag")
            new = edited(stored.content)
            if new == stored.content or await self._replace(scope, stored, new, Change(kind, scope.actor)):
                return await self.get(scope, procedure_id)
        raise Conflict(f"Procedure {procedure_id} is constantly being changed by other requests: try again")

    async def undo(self, scope: Scope, procedure_id: str) -> wire.Procedure:
        """Undo the last change. A second undo reverts the first one.

        Raises NotFound, Conflict or Forbidden. Only administrators can end a quarantine.
        """
        for _ in range(_ATTEMPTS):
            stored = await self._get(writing(scope), procedure_id)
            history = await self._store.load_history(stored.pid)
            last = next((change for change in history.changes if change.version == stored.procedure.version), None)
            if last is None or last.before is None:
                raise Conflict("there is no change to undo")
            if stored.content.state == "quarantined" and last.before.state == "active":
                administering(scope)
            if await self._replace(scope, stored, last.before, Change("undo", scope.actor, last.kind)):
                return await self.get(scope, procedure_id)
        raise Conflict(f"Procedure {procedure_id} is constantly being changed by other requests: try again")

    async def delete(self, scope: Scope, procedure_id: str) -> AckResponse:
        """Delete a procedure. A missing procedure is not an error."""
        stored = await self._store.load(writing(scope), procedure_id)
        if stored is not None:
            await self._store.drop([stored.pid])
        return AckResponse(status="ok")

    async def give_feedback(self, scope: Scope, procedure_id: str, body: wire.ProcedureFeedbackRequest) -> wire.Procedure:
        """Record that a procedure helped or failed. Raises NotFound."""
        stored = await self._get(writing(scope), procedure_id)
        feedback = wire.ProcedureFeedback(**body.model_dump(), at=datetime.now(UTC))
        if not await self._store.add_feedback(stored.pid, feedback, RECENT_OUTCOMES):
            raise _missing(procedure_id)
        return await self.get(scope, procedure_id)

    async def load_history(self, scope: Scope, procedure_id: str) -> wire.ProcedureHistory:
        """Return the latest changes and feedback. Raises NotFound."""
        return await self._store.load_history((await self._get(scope, procedure_id)).pid)

    async def search(self, scope: Scope, body: wire.ProcedureSearchRequest) -> wire.ProcedureSearchResponse:
        """Return the active procedures that fit a situation, best first. Raises Forbidden."""
        clause = owned_by(procedures_of(scope, result=body.result), resolve_owner(scope, body))
        situation = await self._search.situation_of(scope.tenant, body.situation)
        replies = await self._read(lambda pipe: self._search.queue_matches(pipe, clause, situation))
        matches = self._search.rank_matches(replies, situation)[: body.limit]
        return wire.ProcedureSearchResponse(procedures=[match.to_match() for match in matches], notices=list(situation.notices) or None)

    async def count_tool_call(self, scope: Scope, body: wire.ToolCallRequest) -> wire.ToolMemory:
        """Count a tool call and return the tool's statistics. Raises Forbidden."""
        owner = owner_of(writing(scope), body)
        error = None if body.success else (body.error or "")[:300] or None
        call = ToolCall(body.tool, body.arguments, body.success, 0, body.duration_ms, body.cost, error)
        return await self._tools.count_call(scope, owner, call, datetime.now(UTC))

    async def list_tools(
        self, scope: Scope, owner: wire.ProcedureOwner, tool: str | None, *, offset: int, limit: int
    ) -> wire.ToolMemoryListResponse:
        """Return a page of tool statistics, newest first. Raises Forbidden.

        The names in `owner` must match.
        """
        total, tools = await self._tools.list_page(owned_by(tools_of(scope, tool), resolve_owner(scope, owner)), offset, limit)
        return wire.ToolMemoryListResponse(tools=tools, total=total)

    async def _get(self, scope: Scope, procedure_id: str) -> StoredProcedure:
        stored = await self._store.load(scope, procedure_id)
        if stored is None:
            raise _missing(procedure_id)
        return stored

    async def _replace(self, scope: Scope, stored: StoredProcedure, content: wire.ProcedureContent, change: Change) -> bool:
        content = content.model_copy(update={"updated_at": datetime.now(UTC)})
        expected = stored.procedure.version
        return await self._store.write(scope, content, change, former=stored.content, expected=expected) is not None


def screened(settings: Settings, content: wire.ProcedureContent) -> wire.ProcedureContent:
    """Quarantine the procedure if its text looks like prompt injection."""
    if not settings.longterm.quarantine or content.state == "quarantined":
        return content
    texts = (content.when_to_use, *content.steps, content.text or "", *content.pitfalls)
    if any(suspicion(text, of_user=True) for text in texts if text):
        return content.model_copy(update={"state": "quarantined"})
    return content


def _updates_of(body: wire.UpdateProcedureRequest) -> dict[str, Any]:
    """Return the changed values. Null clears a field that can be empty."""
    updates = body.model_dump(exclude_unset=True)
    cleared: dict[str, Any] = {"text": None} if "text" in updates and not updates["text"] else {}
    cleared |= {name: [] for name in _LISTS.intersection(updates) if updates[name] is None}
    return {name: value for name, value in updates.items() if value is not None} | cleared


def owner_of(scope: Scope, requested: wire.ProcedureOwner) -> wire.ProcedureOwner:
    """Return the owner for a write. The caller's scope supplies missing names. Raises Forbidden."""
    namespace, user_id = place_of(scope, requested.namespace, requested.user_id)
    return wire.ProcedureOwner(namespace=namespace, user_id=user_id, agent_id=resolve_name("agent_id", scope.agents, requested.agent_id))


def resolve_owner(scope: Scope, requested: wire.ProcedureOwner) -> wire.ProcedureOwner:
    """Return the owner for a read. None matches any value. Raises Forbidden."""
    namespace, user_id = list_place_of(scope, requested.namespace, requested.user_id)
    permit_agent(scope, requested.agent_id or None)
    return wire.ProcedureOwner(namespace=namespace, user_id=user_id, agent_id=requested.agent_id)


def _missing(procedure_id: str) -> NotFound:
    return NotFound(f"Procedure {procedure_id} not found", field="procedure_id")
