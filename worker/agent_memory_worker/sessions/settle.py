"""Clear a session's work mark after its work is done."""

from __future__ import annotations

from agent_memory.features.sessions.store import SessionStore
from agent_memory.runtime import Runtime


async def settle_session(runtime: Runtime, member: str) -> None:
    """Clear the record that a session has work, if nothing waits; finished batches, too."""
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
