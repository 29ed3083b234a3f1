"""Embed, learn and retire procedures."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from agent_memory.extensions.procedures.helpfulness import has_stopped_helping
from agent_memory.extensions.procedures.learning.learner import SessionLearner
from agent_memory.extensions.procedures.store import INDEX_PROCEDURE, Change, ProcedureStore
from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.features.jobs.order_store import JobOrder, OrderStore
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.logs import get_logger
from agent_memory.runtime import Runtime
from agent_memory_worker.refused_texts import embed_singly

log = get_logger(__name__)

# Procedures per run.
_AT_ONCE = 1000


async def index_procedure(runtime: Runtime, order: JobOrder) -> None:
    """Embed a procedure. Raises ModelUnavailable or ModelAnswerInvalid, which trigger a retry."""
    pid = order.arguments["procedure"] or ""
    if job := await runtime[ProcedureStore].index_job(pid):
        vectors = await runtime[TenantModels].embedder(job.tenant).embed([job.when_to_use])
        await runtime[ProcedureStore].store_vector(pid, job, vectors[0])


async def embed_missing(runtime: Runtime, limit: int) -> int:
    """Embed up to `limit` procedures that have no vector. Return the number processed.

    Procedures that the model rejects count as embedded until the model change is complete.
    """
    procedures = await runtime[ProcedureStore].unembedded(limit)
    orders = [JobOrder(INDEX_PROCEDURE, tenant, {"procedure": pid}) for tenant, pid in procedures]
    for order in await embed_singly(runtime.embedder, orders, partial(index_procedure, runtime)):
        if job := await runtime[ProcedureStore].index_job(pid := order.arguments["procedure"] or ""):
            await runtime[ProcedureStore].store_vector(pid, job, None)
    return len(procedures)


async def learn_session(runtime: Runtime, order: JobOrder) -> None:
    """Learn procedures from a session. Raises ModelUnavailable or Conflict."""
    outcome = await runtime[SessionLearner].learn(sid := order.arguments["session"] or "")
    log.info("learned from a session", tenant=order.tenant, session_id=sid, outcome=outcome)


async def keep_up(runtime: Runtime) -> int:
    """Retire unhelpful procedures, and request missing vectors. Return the combined count."""
    store = runtime[ProcedureStore]
    orders = [JobOrder(INDEX_PROCEDURE, tenant, {"procedure": pid}) for tenant, pid in await store.unembedded(_AT_ONCE)]
    await runtime[OrderStore].place_orders(*orders)
    retired = 0
    for tenant, pid, outcomes in await store.failing(_AT_ONCE):
        if tenant and has_stopped_helping(outcomes) and not await _retire(runtime, tenant, pid, outcomes):
            continue  # The procedure changed in the meantime: the next run checks it again.
        retired += bool(tenant) and has_stopped_helping(outcomes)
        await store.note_looked(pid, outcomes)
    return len(orders) + retired


async def _retire(runtime: Runtime, tenant: str, pid: str, outcomes: str) -> bool:
    """Retire a procedure. Return False if it has changed since it was read."""
    scope = scope_of_work(tenant)
    stored = (await runtime[ProcedureStore].load_pids(scope, [pid]))[0]
    if stored is None or stored.procedure.state != "active":
        return True
    content = stored.content.model_copy(update={"state": "retired", "updated_at": datetime.now(UTC)})
    reason = f"helped {outcomes.count('1')} of the last {len(outcomes)} times"
    version = await runtime[ProcedureStore].write(
        scope, content, Change("retire", "worker", reason), former=stored.content, expected=stored.procedure.version
    )
    return version is not None
