"""Export, import, erase and purge procedures and tool statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection
from typing import Annotated

from pydantic import BaseModel, Field

from agent_memory.extensions.procedures.learning.merging import without_session
from agent_memory.extensions.procedures.records import owner_digest
from agent_memory.extensions.procedures.search import owned_by, procedures_of
from agent_memory.extensions.procedures.service import screened
from agent_memory.extensions.procedures.store import MARKS, Change, ProcedureStore
from agent_memory.extensions.procedures.tool_calls.store import ToolStore, tools_of
from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.feature import AgentOwner, ExportLine, Group, Owner, RestoreTarget
from agent_memory.foundation.core.input.validation import validated
from agent_memory.foundation.core.permissions import access_denied, denied_field, within
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.storage.keyspace import digest, tag
from agent_memory.foundation.storage.search.filters import tagged
from agent_memory.foundation.storage.search.syntax import all_of
from agent_memory_client.models.features.procedures import Procedure, ProcedureHistory, ProcedureOwner

_ATTEMPTS = 5


class _ProcedureLine(BaseModel):
    """A procedure in an export. `marks` are hash fields outside the wire model."""

    procedure: Procedure
    history: ProcedureHistory
    marks: dict[str, Annotated[str, Field(max_length=64, pattern=r"^[0-9.e+-]*$")]]


class _ToolLine(ProcedureOwner):
    """A tool's statistics in an export."""

    tool: Annotated[str, Field(min_length=1, max_length=512)]
    fields: dict[str, Annotated[str, Field(max_length=65_536)]]


class ProcedureTransfer:
    kinds = ("procedure", "tool_memory")

    def __init__(self, settings: Settings, store: ProcedureStore, tools: ToolStore) -> None:
        self._settings = settings
        self._store = store
        self._tools = tools

    async def export_lines(self, scope: Scope, owner: Owner | AgentOwner) -> AsyncIterator[ExportLine]:
        procedure_owner = ProcedureOwner(**owner._asdict())
        async for page in self._store.walk_pids(owned_by(procedures_of(scope, state=None), procedure_owner)):
            for stored in await self._store.load_pids(scope, page):
                if stored is not None:
                    history = await self._store.load_history(stored.pid)
                    yield {
                        "kind": "procedure",
                        "procedure": stored.procedure.model_dump(mode="json"),
                        "history": history.model_dump(mode="json"),
                        "marks": await self._store.export_marks(stored.pid),
                    }
        async for _, fields in self._tools.walk_fields(owned_by(tools_of(scope), procedure_owner)):
            tool_memory = self._tools.check_fields(fields)
            names = tool_memory.model_dump(include=set(ProcedureOwner.model_fields))
            yield {"kind": "tool_memory", "tool": tool_memory.tool, **names, "fields": fields}

    export_agent = export_lines

    async def restore_line(self, scope: Scope, target: RestoreTarget, line: ExportLine) -> str:
        """Store a procedure or tool statistics. Raises BadInput or Forbidden.

        Return "new" if stored, "other" if a procedure exists with different content, and "same" otherwise.
        """
        if line["kind"] == "tool_memory":
            return await self._restore_tool(scope, target, validated(_ToolLine, line))
        read = validated(_ProcedureLine, line)
        if set(read.marks) - set(MARKS):
            raise BadInput("has marks that no procedure has", field="marks")
        owner = _owner(scope, target, read.procedure)
        procedure = read.procedure.model_copy(update=owner)
        if target.moved(read.procedure.namespace):
            # The exported procedure may still exist under its id, so the moved copy gets another id.
            procedure = procedure.model_copy(
                update={"id": digest("moved", procedure.id, target.user_id or procedure.agent_id, procedure.namespace)}
            )
        restored_fields = owner | {"id": procedure.id}
        changes = [
            change.model_copy(update={"before": change.before and change.before.model_copy(update=restored_fields)})
            for change in read.history.changes
        ]
        if procedure.state == "active" and screened(self._settings, procedure).state != "active":
            procedure = procedure.model_copy(update={"state": "quarantined"})
        history = read.history.model_copy(update={"changes": changes})
        return await self._store.bring_in(scope, procedure, history, read.marks, tag(target.source))

    async def _restore_tool(self, scope: Scope, target: RestoreTarget, line: _ToolLine) -> str:
        try:
            self._tools.check_fields(line.fields)
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput("must be the statistics of a tool, as an export writes them", field="fields") from error
        owner = ProcedureOwner(**_owner(scope, target, line))
        return "new" if await self._tools.bring_in(scope, owner, line.tool, line.fields, tag(target.source)) else "same"

    async def undo_import(self, scope: Scope, owner: Owner | AgentOwner, source: str, *, dry_run: bool) -> Counter[str]:
        """Delete imported procedures and tool statistics that have not changed since the import."""
        counts: Counter[str] = Counter()
        procedure_owner = ProcedureOwner(**owner._asdict())
        for name, clause in (("procedures", procedures_of(scope, state=None)), ("tools", tools_of(scope))):
            pages = [page async for page in self._store.walk_pids(owned_by(clause, procedure_owner))]
            counts[name] += sum([await self._store.undo_import(page, tag(source), dry_run=dry_run) for page in pages])
        return counts

    async def erase_owner(self, scope: Scope, owner: Owner | AgentOwner) -> Counter[str]:
        counts: Counter[str] = Counter()
        procedure_owner = ProcedureOwner(**owner._asdict())
        for name, clause in (("procedures", procedures_of(scope, state=None)), ("tools", tools_of(scope))):
            pages = [page async for page in self._store.walk_pids(owned_by(clause, procedure_owner))]
            for page in pages:
                owners = {owner_digest(scope.tenant, stored.procedure) for stored in await self._store.load_pids(scope, page) if stored}
                counts[name] += await self._store.drop(page)
                await self._store.drop_counters(sorted(owners))
        return counts

    erase_agent = erase_owner

    async def erase_session(self, scope: Scope, session: SessionRef) -> Counter[str]:
        return await self.purge_groups(scope, [Group(session.namespace, session.user_id, session.session_id, "")], dry_run=False)

    async def purge_groups(self, scope: Scope, groups: Collection[Group], *, dry_run: bool) -> Counter[str]:
        """Delete procedures learned from these groups. Return the number of affected procedures.

        Procedures created by callers lose only what the sessions added. A dry run only counts.
        """
        counts: Counter[str] = Counter()
        sessions = {(group.namespace, group.user_id, group.session_id) for group in groups if group.session_id is not None}
        for namespace, user_id, session_id in sorted(sessions, key=str):
            clause = owned_by(procedures_of(scope, state=None), ProcedureOwner(namespace=namespace, user_id=user_id))
            pages = [page async for page in self._store.walk_pids(all_of(clause, tagged("s", [tag(session_id or "")])))]
            for pid in [pid for page in pages for pid in page]:
                counts["procedures"] += 1
                if not dry_run:
                    await self._forget_session(scope, pid, session_id or "")
        return counts

    async def _forget_session(self, scope: Scope, pid: str, session_id: str) -> None:
        for _ in range(_ATTEMPTS):
            stored = (await self._store.load_pids(scope, [pid]))[0]
            if stored is None or stored.procedure.origin == "learned":
                await self._store.drop([pid])
                return
            content = without_session(stored.content, session_id)
            expected = stored.procedure.version
            if await self._store.write(scope, content, Change("edit", "worker"), former=stored.content, expected=expected) is not None:
                await self._store.forget_changes(pid)
                return
        await self._store.drop([pid])


def _owner(scope: Scope, target: RestoreTarget, line: ProcedureOwner) -> dict[str, str | None]:
    """Return the owner of an imported line. Raises Forbidden."""
    owner = {"user_id": target.user(line.user_id), "namespace": target.namespace(line.namespace), "agent_id": target.agent(line.agent_id)}
    if not within(scope, line.model_copy(update=owner)):
        raise access_denied("this procedure", denied_field(scope, line.model_copy(update=owner)))
    return owner
