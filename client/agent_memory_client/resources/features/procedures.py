"""Procedures, session results and tool statistics, and the related tools for models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from agent_memory_client._tools.definitions import Definition, text_rule, texts_rule
from agent_memory_client._tools.scope import ToolScope
from agent_memory_client._wire.requests import Call, as_body, checked, idempotency_headers, query, segment
from agent_memory_client.models import AckResponse
from agent_memory_client.models.features.procedures import (
    CreateProcedureRequest,
    Procedure,
    ProcedureFeedbackRequest,
    ProcedureHistory,
    ProcedureListResponse,
    ProcedureResult,
    ProcedureSearchRequest,
    ProcedureSearchResponse,
    ProcedureState,
    SessionResult,
    SessionResultRequest,
    ToolCallRequest,
    ToolMemory,
    ToolMemoryListResponse,
    UpdateProcedureRequest,
)
from agent_memory_client.resources.base import Resource
from agent_memory_client.resources.model_tools import ModelTools

_PATH = "/v1/procedures"
_TOOLS_PATH = "/v1/tools/memory"


class Procedures(Resource):
    """Store procedures, search them by situation, and record session results."""

    async def create(self, request: CreateProcedureRequest | Mapping[str, Any]) -> Procedure:
        """Store a procedure. The server assigns its id."""
        body = as_body(request)
        body["namespace"] = self._namespace(body.get("namespace"))
        return await self._read(Procedure, Call("POST", _PATH, json=body, headers=idempotency_headers()))

    async def get(self, procedure_id: str) -> Procedure:
        """Return a procedure. Raises MemoryNotFoundError."""
        return await self._read(Procedure, Call("GET", _procedure_path(procedure_id)))

    async def list(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        namespace: str | None = None,
        *,
        state: ProcedureState | None = None,
        limit: int = 20,
        offset: int = 0,
    ) -> ProcedureListResponse:
        """Return a page of procedures, newest first. User, agent and namespace must match exactly."""
        params = query(**self._scope(namespace, user_id), agent_id=agent_id, state=state, limit=limit, offset=offset)
        return await self._read(ProcedureListResponse, Call("GET", _PATH, params))

    async def search(
        self,
        situation: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        namespace: str | None = None,
        *,
        limit: int = 5,
        result: ProcedureResult | None = "success",
    ) -> ProcedureSearchResponse:
        """Return the procedures that match a situation, best first."""
        owner = {"agent_id": agent_id, **self._scope(namespace, user_id)}
        request = checked(ProcedureSearchRequest, situation=situation, limit=limit, result=result, **owner)
        return await self._read(ProcedureSearchResponse, Call("POST", f"{_PATH}/search", json=request.model_dump(mode="json")))

    async def update(self, procedure_id: str, request: UpdateProcedureRequest | Mapping[str, Any]) -> Procedure:
        """Change the given fields. None clears `steps`, `text`, `tools` and `pitfalls`.

        Raises MemoryNotFoundError.
        """
        changes = request if isinstance(request, UpdateProcedureRequest) else checked(UpdateProcedureRequest, **request)
        body = changes.model_dump(mode="json", exclude_unset=True)
        return await self._read(Procedure, Call("PATCH", _procedure_path(procedure_id), json=body))

    async def delete(self, procedure_id: str) -> AckResponse:
        """Delete a procedure, if it exists."""
        return await self._read(AckResponse, Call("DELETE", _procedure_path(procedure_id)))

    async def give_feedback(self, procedure_id: str, helped: bool, score: float | None = None, comment: str | None = None) -> Procedure:
        """Record whether a procedure helped. Idempotent. Raises MemoryNotFoundError."""
        body = as_body(checked(ProcedureFeedbackRequest, helped=helped, score=score, comment=comment))
        path = f"{_procedure_path(procedure_id)}/feedback"
        return await self._read(Procedure, Call("POST", path, json=body, headers=idempotency_headers()))

    async def history(self, procedure_id: str) -> ProcedureHistory:
        """Return the latest changes to a procedure and its latest feedback.

        Raises MemoryNotFoundError.
        """
        return await self._read(ProcedureHistory, Call("GET", f"{_procedure_path(procedure_id)}/history"))

    async def undo(self, procedure_id: str) -> Procedure:
        """Undo the last change to a procedure. Raises MemoryNotFoundError."""
        return await self._read(Procedure, Call("POST", f"{_procedure_path(procedure_id)}/undo", headers=idempotency_headers()))

    async def mark_result(
        self,
        session_id: str,
        result: ProcedureResult,
        user_id: str | None = None,
        namespace: str | None = None,
        *,
        score: float | None = None,
        comment: str | None = None,
        agent_id: str | None = None,
    ) -> SessionResult:
        """Store a session's result for a worker to learn from. Raises MemoryNotFoundError."""
        body = as_body(checked(SessionResultRequest, result=result, score=score, comment=comment, agent_id=agent_id))
        path = f"/v1/working-memory/{segment('session_id', session_id)}/result"
        return await self._read(SessionResult, Call("PATCH", path, query(**self._scope(namespace, user_id)), json=body))

    async def get_result(self, session_id: str, user_id: str | None = None, namespace: str | None = None) -> SessionResult:
        """Return a session's result and the procedure learned from it. Raises MemoryNotFoundError."""
        path = f"/v1/session-results/{segment('session_id', session_id)}"
        return await self._read(SessionResult, Call("GET", path, query(**self._scope(namespace, user_id))))

    async def count_tool_call(self, request: ToolCallRequest | Mapping[str, Any]) -> ToolMemory:
        """Record a tool call and return the tool's statistics."""
        body = as_body(request)
        body["namespace"] = self._namespace(body.get("namespace"))
        return await self._read(ToolMemory, Call("POST", _TOOLS_PATH, json=body, headers=idempotency_headers()))

    async def list_tools(
        self,
        tool: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        namespace: str | None = None,
        *,
        limit: int = 20,
        offset: int = 0,
    ) -> ToolMemoryListResponse:
        """Return a page of tool statistics: arguments, counts, durations and costs."""
        params = query(tool=tool, **self._scope(namespace, user_id), agent_id=agent_id, limit=limit, offset=offset)
        return await self._read(ToolMemoryListResponse, Call("GET", _TOOLS_PATH, params))


_SEARCH, _SAVE = "search_procedures", "save_procedure"


class ProcedureTools(ModelTools):
    """Tools that let a model search and store procedures."""

    definitions: ClassVar[tuple[Definition, ...]] = (
        Definition(
            _SEARCH,
            "Finds what worked before in a situation like this one: steps, tools and what to avoid. Use it before a task with several "
            "steps.",
            {"situation": text_rule("The task, in plain words.")},
            ("situation",),
        ),
        Definition(
            _SAVE,
            "Saves steps that worked, for the next situation of the same kind.",
            {
                "when_to_use": text_rule("The kind of situation in which to use the procedure."),
                "steps": texts_rule("The steps, one per entry, in order."),
                "tools": texts_rule("The names of the tools that the procedure uses."),
                "pitfalls": texts_rule("What did not work."),
            },
            ("when_to_use", "steps"),
        ),
    )

    async def run_tool(self, name: str, values: Mapping[str, Any], scope: ToolScope) -> dict[str, Any]:
        """Search or store procedures within `scope`, and return them."""
        owner = {"user_id": scope.user_id, "agent_id": scope.agent_id, "namespace": scope.namespace}
        if name == _SEARCH:
            call = Call("POST", f"{_PATH}/search", json={"situation": values.get("situation"), **owner})
            procedures = (await self._read(ProcedureSearchResponse, call)).procedures
            return {
                "summary": "\n".join(_procedure_text(procedure) for procedure in procedures) or "No matching procedures.",
                "count": len(procedures),
            }
        body = {key: values[key] for key in ("when_to_use", "steps", "tools", "pitfalls") if key in values} | owner
        stored = await self._read(Procedure, Call("POST", _PATH, json=body, headers=idempotency_headers()))
        return {"summary": f"Saved as {stored.id}.", "id": stored.id}


def _procedure_text(procedure: Procedure) -> str:
    steps = [f"{number}. {step}" for number, step in enumerate(procedure.steps, start=1)]
    text = [procedure.text] if procedure.text else []
    pitfalls = [f"Avoid: {pitfall}" for pitfall in procedure.pitfalls]
    return "\n".join([f"When: {procedure.when_to_use} (ID: {procedure.id})", *steps, *text, *pitfalls])


def _procedure_path(procedure_id: str) -> str:
    return f"{_PATH}/{segment('procedure_id', procedure_id)}"
