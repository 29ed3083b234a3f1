"""The procedures feature, which records what worked in a situation."""

from __future__ import annotations

from agent_memory.extensions.procedures.learning.learner import SessionLearner
from agent_memory.extensions.procedures.learning.results import LEARN_SESSION, ResultStore
from agent_memory.extensions.procedures.search import ProcedureSearch
from agent_memory.extensions.procedures.search_index import index_schemas
from agent_memory.extensions.procedures.section import ProcedureSection
from agent_memory.extensions.procedures.service import ProcedureService
from agent_memory.extensions.procedures.store import INDEX_PROCEDURE, ProcedureStore
from agent_memory.extensions.procedures.tool_calls.store import ToolStore
from agent_memory.extensions.procedures.transfer import ProcedureTransfer
from agent_memory.features.access.context_limits import ContextLimits
from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.feature import Feature, KeySpace, PeriodicJob, Services, while_enabled
from agent_memory.foundation.foundation import Foundation
from agent_memory.foundation.storage.connection import PipelineReader


def open_procedures(foundation: Foundation, services: Services) -> None:
    settings, client, keys = foundation.settings, foundation.client, foundation.keys
    spec, fsync = foundation.spec, foundation.fsync
    store = ProcedureStore(client, keys, spec, fsync=fsync)
    tools = ToolStore(client, keys, spec, redacts=settings.longterm.redact_secrets, fsync=fsync)
    search = ProcedureSearch(settings, keys, spec, services[TenantModels].embedder)
    results = ResultStore(client, keys, fsync=fsync)
    limits = services[ContextLimits] if foundation.extracts else None
    models = (services[TenantModels], limits, foundation.counter)
    services.add(
        store,
        tools,
        search,
        results,
        ProcedureService(settings, store, tools, search, PipelineReader(client)),
        ProcedureSection(search, foundation.counter),
        ProcedureTransfer(settings, store, tools),
        SessionLearner(settings, (client, keys), results, (store, search, tools), services[SessionStore], models),
    )


FEATURE = Feature(
    name="procedures",
    open=open_procedures,
    routes=("agent_memory.extensions.procedures.routes:router",),
    examples="agent_memory.extensions.procedures.examples:EXAMPLES",
    indexes=index_schemas,
    keys=(
        KeySpace("pr:<pid>", "hash", "a procedure or tool memory, with index fields and vector", "until deleted"),
        KeySpace("pr:<pid>:c", "list", "a procedure's last changes", "as the procedure"),
        KeySpace("pr:<pid>:f", "list", "a procedure's last feedback", "as the procedure"),
        KeySpace("prf", "set", "procedures that did not help and await a check", "until checked", personal=False),
        KeySpace("po:<owner>", "string", "the fence for learning an owner's procedures", "a day after the last learning", personal=False),
    ),
    jobs={INDEX_PROCEDURE: "agent_memory_worker.procedures:index_procedure", LEARN_SESSION: "agent_memory_worker.procedures:learn_session"},
    embed_missing="agent_memory_worker.procedures:embed_missing",
    schedule={"procedures": PeriodicJob("agent_memory_worker.procedures:keep_up", while_enabled(60.0))},
    exporter=ProcedureTransfer,
    session_part=ResultStore,
    eraser=ProcedureTransfer,
    purger=ProcedureTransfer,
    section=ProcedureSection,
    tools=("agent_memory.extensions.procedures.tools:TOOLS",),
)
