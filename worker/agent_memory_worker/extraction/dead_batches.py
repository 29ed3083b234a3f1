"""Set aside batches that extraction cannot process."""

from __future__ import annotations

from agent_memory.features.sessions.store import Journal, SessionStore
from agent_memory.foundation.core.errors import ContextExceeded
from agent_memory.foundation.core.logs import get_logger
from agent_memory.runtime import Runtime
from agent_memory_worker.extraction.batches import BATCH, within

log = get_logger(__name__)


async def move_failed_batch(runtime: Runtime, member: str) -> bool:
    """Set aside a batch that has failed too many times.

    Return False if no messages are pending, or if the batch was already set aside.
    """
    if "." in member:
        return False
    journal = await runtime[SessionStore].journal(member, "je", BATCH)
    if journal is None or not journal.waiting:
        return False
    batch = within(journal.waiting, runtime.settings.longterm.extraction_batch_tokens)
    log.error("extraction gave up", **_subject(journal), messages=len(batch), hint="see GET /v1/operations?state=dead")
    return await runtime[SessionStore].move_to_dead_batch(member, journal, len(batch))


async def move_oversized_batch(runtime: Runtime, sid: str, journal: Journal, count: int, error: ContextExceeded) -> None:
    """Set aside messages that do not fit into the model's context.

    Raises `error` if the messages were already set aside.
    """
    if "." in sid:
        raise error
    log.error("messages exceed the model's context and were set aside", **_subject(journal), messages=count, error=error)
    await runtime[SessionStore].move_to_dead_batch(sid, journal, count, f"{type(error).__name__}: {error}")


def _subject(journal: Journal) -> dict[str, str]:
    return {"tenant": journal.tenant, "session_id": journal.ref.session_id}
