"""Erasing: everything that an order to delete names goes, sessions first, so that their pending work cannot bring anything back."""

from __future__ import annotations

from collections import Counter

from agent_memory.access.principals import scope_of_work
from agent_memory.access.tokens import TokenService
from agent_memory.core.feature import AgentEraser, AgentOwner, Owner, SessionEraser
from agent_memory.core.scope import Scope, SessionRef
from agent_memory.jobs.erasure_orders import Erasure, ErasureOrders
from agent_memory.memories.store import MemoryStore
from agent_memory.privacy.erasure_store import ErasureOrder, ErasureStore
from agent_memory.privacy.surviving_evidence import hand_on
from agent_memory.privacy.traces import TraceStore, may_name_agent, may_name_user
from agent_memory.runtime import Runtime
from agent_memory.sessions.agent_sessions import AgentSessions
from agent_memory.sessions.store import SessionEpoch, SessionStore
from agent_memory_client.models import PurgeRequest
from agent_memory_worker.privacy.purge import purge_source

_PAGE = 100


async def erase(runtime: Runtime, name: str) -> int:
    """Carries out an order and leaves a receipt; returns how much went. Done twice, the second time finds nothing.

    What goes is what was seen while the order stood, in the version that was seen: a worker that was stopped and wakes up after another
    one has finished its work deletes nothing that came later.
    """
    order = await runtime[ErasureStore].load(name)
    if order is None:
        return 0
    scope = scope_of_work(order.what.tenant)
    counts: Counter[str] = Counter()
    if order.what.agent_id is not None:
        return await _erase_agent(runtime, scope, order, order.what.agent_id)
    while sessions := await _sessions(runtime, scope, order):
        if not await runtime[ErasureStore].stands(order):
            return counts.total()
        counts["sessions"] += sum([await runtime[SessionStore].delete_life(scope, life) for life in sessions])
    while records := await runtime[ErasureStore].page(scope, order.what):
        if not await runtime[ErasureStore].stands(order):
            return counts.total()
        await hand_on(runtime.services, scope, order.what, records)
        counts["memories"] += sum(await runtime[MemoryStore].drop_records(scope, records))
    if order.what.session_id is not None:
        await runtime[TraceStore].forget_evidence(scope, order.what)
        counts += await _erase_session(runtime, scope, SessionRef(order.what.session_id, order.what.namespace, order.what.user_id))
    counts["versions"] += await runtime[TraceStore].forget_past(scope, order.what)
    await runtime[TraceStore].forget_claims(scope)
    if order.what.session_id is None and order.what.user_id is not None:
        for eraser in runtime.services.erasers:
            counts += await eraser.erase_owner(scope, Owner(order.what.namespace, order.what.user_id))
        if order.what.namespace is None:
            await _forget_traces(runtime, scope, order.what.user_id, counts)
        await runtime[TraceStore].rewrite_log()
    await runtime[ErasureStore].leave_receipt(order, +counts)
    return counts.total()


async def _erase_session(runtime: Runtime, scope: Scope, session: SessionRef) -> Counter[str]:
    """What features made of a session."""
    counts: Counter[str] = Counter()
    for eraser in runtime.services.erasers:
        if isinstance(eraser, SessionEraser):
            counts += await eraser.erase_session(scope, session)
    return counts


async def _erase_agent(runtime: Runtime, scope: Scope, order: ErasureOrder, agent_id: str) -> int:
    """Everything of an agent: its sessions with what was said there, what bears its name, and what features keep of it."""
    namespace = order.what.namespace
    counts: Counter[str] = Counter()
    async for refs in runtime[AgentSessions].pages(scope, namespace, agent_id):
        for ref in refs:
            if not await runtime[ErasureStore].stands(order):
                return counts.total()
            # An order of its own: when the session is gone, nothing else says that its memories were to go.
            erasure = Erasure(scope.tenant, ref.namespace, ref.user_id, ref.session_id)
            mark = await runtime[ErasureOrders].order_erasure(scope, erasure)
            await erase(runtime, mark.member)
            counts["sessions"] += 1
    if not await runtime[ErasureStore].stands(order):
        return counts.total()
    purged, _ = await purge_source(runtime, scope, PurgeRequest(agent_id=agent_id), (namespace, None))
    counts += Counter(memories=purged["matched"] + purged["inferred"], messages=purged["messages"])
    counts["versions"] += await runtime[TraceStore].forget_past(scope, order.what)
    await runtime[TraceStore].forget_claims(scope)
    for eraser in runtime.services.erasers:
        if isinstance(eraser, AgentEraser):
            counts += await eraser.erase_agent(scope, AgentOwner(namespace, agent_id))
    if namespace is None:
        counts["keys"] += await runtime[TokenService].forget_agent(scope.tenant, agent_id)
        counts["orders"] += await runtime[TraceStore].forget_orders(scope, lambda kept: may_name_agent(kept, agent_id))
        counts["answers"] += await runtime[TraceStore].forget_answers(agent_id)
    await runtime[TraceStore].rewrite_log()
    await runtime[ErasureStore].leave_receipt(order, +counts)
    return counts.total()


async def _sessions(runtime: Runtime, scope: Scope, order: ErasureOrder) -> list[SessionEpoch]:
    """Some sessions that an order names, and those that have come to their end but left work behind; none when all are gone."""
    what = order.what
    if what.session_id is not None:
        return await runtime[SessionStore].lives(
            scope, [runtime[SessionStore].sid(scope, SessionRef(what.session_id, what.namespace, what.user_id))]
        )
    _, refs = await runtime[SessionStore].list(scope, what.namespace, what.user_id, 0, _PAGE)
    lives = await runtime[SessionStore].lives(scope, [runtime[SessionStore].sid(scope, ref) for ref in refs])
    if lives or what.user_id is None:
        return lives
    waiting = await runtime[SessionStore].lives(scope, await runtime[SessionStore].waiting(scope, what.user_id))
    return [life for life in waiting if life.user_id == what.user_id and what.namespace in (None, life.namespace)]


async def _forget_traces(runtime: Runtime, scope: Scope, user_id: str, counts: Counter[str]) -> None:
    counts["keys"] += await runtime[TokenService].forget_user(scope.tenant, user_id)
    counts["orders"] += await runtime[TraceStore].forget_orders(scope, lambda order: may_name_user(order, user_id))
    # Last: what a request was answered while this went on may be kept by now.
    counts["answers"] += await runtime[TraceStore].forget_answers(user_id)
