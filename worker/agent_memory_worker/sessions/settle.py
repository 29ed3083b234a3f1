"""After work on a session: what extraction cannot do steps aside, and when nothing waits any more nothing says so any more."""

from __future__ import annotations

import logging

from agent_memory.runtime import Runtime
from agent_memory.sessions.store import SessionStore
from agent_memory_worker.extraction.batches import BATCH, within

log = logging.getLogger(__name__)


async def park_batch(runtime: Runtime, member: str) -> bool:
    """Takes the batch that extraction failed at so often out of its way; it can be replayed or dropped by itself.

    False when there is none, and for a batch that is set aside already: that one ends as any other dead letter.
    """
    if "." in member:
        return False
    journal = await runtime[SessionStore].journal(member, "je", BATCH)
    if journal is None or not journal.waiting:
        return False
    batch = within(journal.waiting, runtime.settings.longterm.extraction_batch_tokens)
    log.error("extraction gave up %d messages of the session %s: see its dead operation", len(batch), journal.ref.session_id)
    return await runtime[SessionStore].set_aside(member, journal, len(batch))


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
