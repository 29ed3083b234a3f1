"""Promotion: what a session holds becomes long-term memory, word for word, each memory knowing the message it came from."""

from __future__ import annotations

from datetime import UTC, datetime

from agent_memory.analysis import carries_information
from agent_memory.runtime import Runtime
from agent_memory.services.access import scope_of_work
from agent_memory.services.longterm import content_hash, message_memory_id
from agent_memory.storage.codec import StoredMessage, decode_own
from agent_memory.storage.memories import Fence
from agent_memory.storage.working import JOURNAL_CONTEXT, Journal
from agent_memory_client.models import ANSWER, MemoryRecord, MemoryTypeEnum

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
        records = [message_memory(journal, stored) for stored in messages if stored.promote and carries_information(stored.message.content)]
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


def message_memory(journal: Journal, stored: StoredMessage) -> MemoryRecord:
    """The memory of one message, however long it is and whatever its id: rules for memories are rules for those who write memories."""
    message, ref = stored.message, journal.ref
    record = MemoryRecord.model_validate(
        {
            "id": message_memory_id(ref, message.id),
            "text": message.content,
            "namespace": ref.namespace,
            "user_id": ref.user_id,
            "session_id": ref.session_id,
            "memory_type": MemoryTypeEnum.MESSAGE,
            "created_at": message.created_at,
            "last_accessed": message.created_at,
            "persisted_at": datetime.now(UTC),
            "extracted_from": [message.id],
            "extraction_strategy": "message",
            "discrete_memory_extracted": "t",
            "metadata": {"role": message.role},
        },
        context=ANSWER,
    )
    record.memory_hash = content_hash(record)
    return record


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
