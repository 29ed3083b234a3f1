"""Erasing: everything that an order to delete names goes, sessions first, so that their pending work cannot bring anything back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from agent_memory.runtime import Runtime
from agent_memory.scope import Scope, SessionRef
from agent_memory.services.access import scope_of_work
from agent_memory.storage.erasure import Erasure, Ordered
from agent_memory.storage.working import Life
from agent_memory_client.models import SummaryView
from agent_memory_worker.heirs import hand_on

_PAGE = 100


async def erase(runtime: Runtime, name: str) -> int:
    """Carries out an order and leaves a receipt; returns how much went. Done twice, the second time finds nothing.

    What goes is what was seen while the order stood, in the version that was seen: a worker that was stopped and wakes up after another
    one has finished its work deletes nothing that came later.
    """
    order = await runtime.erasures.load(name)
    if order is None:
        return 0
    scope = scope_of_work(order.what.tenant)
    counts: Counter[str] = Counter()
    while sessions := await _sessions(runtime, scope, order):
        if not await runtime.erasures.stands(order):
            return counts.total()
        counts["sessions"] += sum([await runtime.sessions.delete_life(scope, life) for life in sessions])
    while records := await runtime.erasures.page(scope, order.what):
        if not await runtime.erasures.stands(order):
            return counts.total()
        await hand_on(runtime, scope, order.what, records)
        counts["memories"] += sum(await runtime.memories.drop(scope, records))
    if order.what.session_id is not None:
        await runtime.traces.forget_evidence(scope, order.what)
    counts["versions"] += await runtime.traces.forget_past(scope, order.what)
    await runtime.traces.forget_claims(scope)
    if order.what.session_id is None and order.what.user_id is not None:
        await runtime.extraction_rules.forget_user(scope, order.what.user_id, order.what.namespace)
        await _forget_derived(runtime, scope, order.what, counts)
        if order.what.namespace is None:
            await _forget_traces(runtime, scope, order.what.user_id, counts)
        await runtime.traces.rewrite_log()
    await runtime.erasures.finished(order, +counts)
    return counts.total()


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


async def _forget_derived(runtime: Runtime, scope: Scope, what: Erasure, counts: Counter[str]) -> None:
    """Summaries that may have been made of the user's memories; views kept up to date make those of the others' again."""
    for view in await runtime.view_store.list(scope):
        if what.namespace is None and _names_user(view, what.user_id):
            counts["views"] += int(await runtime.view_store.delete(scope, view.id))
            continue
        stored = await runtime.view_store.partitions(scope, view.id)
        names = [name for name, one in stored.items() if _may_hold(one.result.group, what)]
        await runtime.view_store.drop(scope, view.id, names)
        counts["summaries"] += len(names)


async def _forget_traces(runtime: Runtime, scope: Scope, user_id: str, counts: Counter[str]) -> None:
    counts["keys"] += await runtime.tokens.forget_user(scope.tenant, user_id)
    counts["orders"] += await runtime.traces.forget_orders(scope, user_id)
    # Last: what a request was answered while this went on may be kept by now.
    counts["answers"] += await runtime.traces.forget_answers(user_id)


def _may_hold(group: Mapping[str, str], what: Erasure) -> bool:
    """Whether a summary of this group may tell of the user."""
    return group.get("user_id", what.user_id) == what.user_id and what.namespace in (None, group.get("namespace", what.namespace))


def _names_user(view: SummaryView, user_id: str | None) -> bool:
    """Whether a view is about this user by its filter."""
    return user_id is not None and user_id in _texts(view.filters.get("user_id"))


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return [text for item in value for text in _texts(item)] if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
