"""Promotion: what a session holds becomes long-term memory, word for word, each memory knowing the message it came from."""

from __future__ import annotations

from collections.abc import Sequence

from agent_memory.errors import BadInput, IdTaken
from agent_memory.llm.threads import aside
from agent_memory.runtime import Runtime
from agent_memory.scope import Scope
from agent_memory.services.access import scope_of_work
from agent_memory.services.longterm import message_memory
from agent_memory.services.quarantine import screened
from agent_memory.settings import Settings
from agent_memory.storage.codec import StoredMessage
from agent_memory.storage.memories import Fence
from agent_memory.storage.working import JOURNAL_CONTEXT, Journal
from agent_memory_client.models import MemoryRecord, MemoryStrategyConfig
from agent_memory_worker.heard import Hearing
from agent_memory_worker.own_memories import store_own

# Memories of one step. Redis serves nobody else meanwhile, and a memory takes it about a fifth of a millisecond.
_BATCH = 50


async def promote_session(runtime: Runtime, sid: str) -> int:
    """Promotes all that waits in a session; returns how many memories that made.

    Memories and cursor are written in one step: after a crash, or done twice, the effect is the same.
    """
    made = 0
    taken: set[str] = set()
    longterm = runtime.settings.longterm
    while (journal := await runtime.sessions.journal(sid, "jp", _BATCH)) is not None:
        if not journal.waiting and not journal.own:
            break
        scope = scope_of_work(journal.tenant)
        pending = dict(list(journal.own.items())[:_BATCH])
        hearing = await _hearing(runtime, scope, journal)
        settings = runtime.settings
        if pending and not await store_own(runtime, sid, journal, pending, hearing):
            continue
        messages = journal.waiting if longterm.enabled and longterm.promote_messages else []
        records = await _heard(settings, hearing, journal, messages)
        # An id that somebody else has by now, whether by chance or because it can be computed, keeps no message from being remembered.
        records = [one.model_copy(update={"id": runtime.ids.instead_of(one.id)}) if one.id in taken else one for one in records]
        fence = Fence(
            sid=sid,
            epoch=journal.epoch,
            cursor="jp",
            start=journal.start,
            to=journal.start + len(journal.waiting),
            keep=JOURNAL_CONTEXT,
            both=not runtime.extracts,
        )
        try:
            if await runtime.memories.write(scope, records, fence=fence, late=True) is None:
                continue  # Another worker was faster, or the session was deleted: read again.
        except IdTaken as error:
            taken.update(error.ids)
            continue
        made += len(pending) + len(records)
        if journal.complete and len(pending) == len(journal.own):
            break  # What came since has marked the session again.
    return made


async def _heard(settings: Settings, hearing: Hearing, journal: Journal, messages: Sequence[StoredMessage]) -> list[MemoryRecord]:
    """The memories of what is kept of messages."""

    def made() -> list[MemoryRecord]:
        kept = [(stored, hearing.text(stored.message)) for stored in messages if stored.promote]
        return [screened(settings, message_memory(journal.ref, stored, text)) for stored, text in kept if text]

    return await aside(made, sum([len(stored.message.content) for stored in messages]))


async def _hearing(runtime: Runtime, scope: Scope, journal: Journal) -> Hearing:
    redacts = runtime.settings.longterm.redact_secrets
    try:
        rules = await runtime.extraction_rules.of_session(scope, journal.ref, journal.strategy)
    except BadInput:
        # A strategy from before strategies were checked: what it forbids is not known, and promotion does not need the rest of it.
        rules = await runtime.extraction_rules.of_session(scope, journal.ref, MemoryStrategyConfig())
    return Hearing(rules.blocklist, redacts)
