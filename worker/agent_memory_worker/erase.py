"""Erasing: everything that an order to delete names goes, sessions first, so that their pending work cannot bring anything back."""

from __future__ import annotations

from agent_memory.runtime import Runtime
from agent_memory.services.access import scope_of_work

_PAGE = 100


async def erase(runtime: Runtime, name: str) -> int:
    """Carries out an order; returns how many sessions and memories went. Done twice, the second time finds nothing."""
    what = await runtime.erasures.load(name)
    if what is None:
        return 0
    scope = scope_of_work(what.tenant)
    gone = 0
    session = runtime.erasures.session(what)
    if session is not None:
        gone += int(await runtime.sessions.delete(scope, session))
    else:
        while True:
            _, found = await runtime.sessions.list(scope, what.namespace, what.user_id, 0, _PAGE)
            deleted = [await runtime.sessions.delete(scope, ref) for ref in found]
            gone += sum(deleted)
            if not any(deleted):
                break
        if what.user_id is not None:
            # Sessions that came to their end leave what waits of them behind.
            gone += await runtime.sessions.delete_waiting(scope, what.user_id, what.namespace)
    while records := await runtime.erasures.page(scope, what):
        gone += await runtime.memories.delete(scope, records)
    await runtime.erasures.finished(name)
    return gone
