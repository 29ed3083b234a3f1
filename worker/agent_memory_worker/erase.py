"""Erasing: everything that an order to delete names goes, sessions first, so that their pending work cannot bring anything back."""

from __future__ import annotations

from agent_memory.runtime import Runtime
from agent_memory.scope import Scope, SessionRef
from agent_memory.services.access import scope_of_work
from agent_memory.storage.erasure import Ordered
from agent_memory.storage.working import Life

_PAGE = 100


async def erase(runtime: Runtime, name: str) -> int:
    """Carries out an order; returns how many sessions and memories went. Done twice, the second time finds nothing.

    What goes is what was seen while the order stood, in the version that was seen: a worker that was stopped and wakes up after another
    one has finished its work deletes nothing that came later.
    """
    order = await runtime.erasures.load(name)
    if order is None:
        return 0
    scope = scope_of_work(order.what.tenant)
    gone = 0
    while sessions := await _sessions(runtime, scope, order):
        if not await runtime.erasures.stands(order):
            return gone
        gone += sum([await runtime.sessions.delete_life(scope, life) for life in sessions])
    while records := await runtime.erasures.page(scope, order.what):
        if not await runtime.erasures.stands(order):
            return gone
        gone += sum(await runtime.memories.drop(scope, records))
    if order.what.user_id is not None and order.what.session_id is None:
        await runtime.extraction_rules.forget_user(scope, order.what.user_id, order.what.namespace)
    await runtime.erasures.finished(order)
    return gone


async def _sessions(runtime: Runtime, scope: Scope, order: Ordered) -> list[Life]:
    """Some sessions that an order names, and those that have come to their end but left work behind; none when all are gone."""
    what = order.what
    if what.session_id is not None:
        return await runtime.sessions.lives(scope, [runtime.sessions.sid(scope, SessionRef(what.session_id, what.namespace, what.user_id))])
    _, found = await runtime.sessions.list(scope, what.namespace, what.user_id, 0, _PAGE)
    lives = await runtime.sessions.lives(scope, [runtime.sessions.sid(scope, ref) for ref in found])
    if lives or what.user_id is None:
        return lives
    waiting = await runtime.sessions.lives(scope, await runtime.sessions.waiting(scope, what.user_id))
    return [life for life in waiting if life.user_id == what.user_id and what.namespace in (None, life.namespace)]
