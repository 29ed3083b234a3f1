"""Promotion: what a session holds becomes long-term memory, word for word, each memory knowing the message it came from."""

from __future__ import annotations

from datetime import UTC, datetime

from agent_memory.analysis import carries_information
from agent_memory.runtime import Runtime
from agent_memory.services.access import scope_of_work
from agent_memory.services.longterm import content_hash, message_memory
from agent_memory.storage.codec import decode_own
from agent_memory.storage.memories import Fence
from agent_memory.storage.working import JOURNAL_CONTEXT, Journal
from agent_memory_client.models import MemoryRecord

_BATCH = 200


async def promote_session(runtime: Runtime, sid: str) -> int:
    """Promotes all that waits in a session; returns how many memories that made.

    Memories and cursor are written in one step: after a crash, or done twice, the effect is the same.
    """
    made = 0
    longterm = runtime.settings.longterm
    while (journal := await runtime.sessions.journal(sid, "jp", _BATCH)) is not None:
        if not journal.waiting and not journal.own:
            break
        pending = dict(list(journal.own.items())[:_BATCH])
        own = [own_memory(journal, raw) for raw in pending.values()] if longterm.enabled else []
        messages = journal.waiting if longterm.enabled and longterm.promote_messages else []
        records = [
            message_memory(journal.ref, stored) for stored in messages if stored.promote and carries_information(stored.message.content)
        ]
        fence = Fence(
            sid=sid,
            epoch=journal.epoch,
            cursor="jp",
            start=journal.start,
            to=journal.start + len(journal.waiting),
            keep=JOURNAL_CONTEXT,
            both=not runtime.extracts,
            own=pending,
        )
        if await runtime.memories.write(scope_of_work(journal.tenant), [*own, *records], fence=fence, late=True) is None:
            continue  # Another worker was faster, or the session was deleted: read again.
        made += len(own) + len(records)
    return made


def own_memory(journal: Journal, raw: str) -> MemoryRecord:
    """A memory that was put into a session; what a session holds belongs where the session belongs."""
    record, ref = decode_own(raw), journal.ref
    placed = record.model_copy(
        update={
            "namespace": record.namespace or ref.namespace,
            "user_id": record.user_id or ref.user_id,
            "session_id": record.session_id or ref.session_id,
            "extraction_strategy": journal.strategy.strategy,
            "persisted_at": datetime.now(UTC),
        }
    )
    placed.memory_hash = record.memory_hash or content_hash(placed)
    return placed
