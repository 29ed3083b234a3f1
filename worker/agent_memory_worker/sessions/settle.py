"""Clear the record of a session's pending work after the work is done."""

from __future__ import annotations

from agent_memory.features.sessions.store import SessionStore
from agent_memory.runtime import Runtime


async def settle_session(runtime: Runtime, member: str) -> None:
    """Clear the record of pending work if nothing is waiting. Also clear a finished batch that was set aside."""
    sid, batch, _ = member.partition(".")
    owner = await runtime[SessionStore].owner(member)
    if owner is None:
        return
    if batch:
        journal = await runtime[SessionStore].journal(member, "je", 1)
        if journal is None or journal.waiting:
            return
        await runtime[SessionStore].settle(sid, *owner, batch=member)
    else:
        await runtime[SessionStore].settle(sid, *owner)
