"""After work on a session: when nothing of it waits any more, nothing says so any more."""

from __future__ import annotations

from agent_memory.features.sessions.store import SessionStore
from agent_memory.runtime import Runtime


async def settle_session(runtime: Runtime, member: str) -> None:
    """Ends the record that a session has work, if nothing of it waits; a batch that is done ends as well."""
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
