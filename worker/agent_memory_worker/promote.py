"""Promotion: what a session holds becomes long-term memory, word for word, each memory knowing the message it came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from agent_memory.errors import BadInput
from agent_memory.runtime import Runtime
from agent_memory.scope import Scope
from agent_memory.services.access import scope_of_work
from agent_memory.services.longterm import content_hash, message_memory
from agent_memory.services.quarantine import given, screened
from agent_memory.services.settling import decide
from agent_memory.storage.codec import decode_own
from agent_memory.storage.decisions import Origin
from agent_memory.storage.memories import Fence
from agent_memory.storage.working import JOURNAL_CONTEXT, Journal
from agent_memory_client.models import MemoryRecord, MemoryStrategyConfig
from agent_memory_worker.heard import Hearing

# Memories of one step. Redis serves nobody else meanwhile, and a memory takes it about a fifth of a millisecond.
_BATCH = 50
_STATED = Origin("client", "stated in a session")


async def promote_session(runtime: Runtime, sid: str) -> int:
    """Promotes all that waits in a session; returns how many memories that made.

    Memories and cursor are written in one step: after a crash, or done twice, the effect is the same.
    """
    made = 0
    longterm = runtime.settings.longterm
    while (journal := await runtime.sessions.journal(sid, "jp", _BATCH)) is not None:
        if not journal.waiting and not journal.own:
            break
        scope = scope_of_work(journal.tenant)
        pending = dict(list(journal.own.items())[:_BATCH])
        hearing = await _hearing(runtime, scope, journal)
        settings = runtime.settings
        own = [given(settings, own_memory(journal, raw, hearing)) for raw in pending.values()] if longterm.enabled else []
        messages = journal.waiting if longterm.enabled and longterm.promote_messages else []
        kept = [(stored, hearing.text(stored.message)) for stored in messages if stored.promote]
        records = [screened(settings, message_memory(journal.ref, stored, text)) for stored, text in kept if text]
        if pending and not await _settle_own(runtime, scope, sid, journal, pending, own):
            continue
        fence = Fence(
            sid=sid,
            epoch=journal.epoch,
            cursor="jp",
            start=journal.start,
            to=journal.start + len(journal.waiting),
            keep=JOURNAL_CONTEXT,
            both=not runtime.extracts,
        )
        if await runtime.memories.write(scope, records, fence=fence, late=True) is None:
            continue  # Another worker was faster, or the session was deleted: read again.
        made += len(own) + len(records)
        if journal.complete and len(pending) == len(journal.own):
            break  # What came since has marked the session again.
    return made


async def _settle_own(
    runtime: Runtime, scope: Scope, sid: str, journal: Journal, pending: Mapping[str, str], own: Sequence[MemoryRecord]
) -> bool:
    """Stores what was put into a session as if it had been created: what repeats a memory is its evidence, a slot has one fact.

    False when the session or a memory moved on, or when some must wait for others: the rest is for another look at the journal.
    """
    decided = await decide(runtime.memories, runtime.neighbours, scope, own)
    done = {record.id: pending[record.id] for record, _ in decided} if own else pending
    # The cursor stays: what is moved on is the memories that wait, and only while the session is the one that was read.
    fence = Fence(sid, journal.epoch, "jp", journal.start, journal.start, JOURNAL_CONTEXT, own=done)
    decisions = [one for _, some in decided for one in some]
    outcome = await runtime.decisions.commit(scope, decisions, _STATED, fence=fence, late=True, stated=True)
    return outcome.done and len(done) == len(pending)


async def _hearing(runtime: Runtime, scope: Scope, journal: Journal) -> Hearing:
    redacts = runtime.settings.longterm.redact_secrets
    try:
        rules = await runtime.extraction_rules.of_session(scope, journal.ref, journal.strategy)
    except BadInput:
        # A strategy from before strategies were checked: what it forbids is not known, and promotion does not need the rest of it.
        rules = await runtime.extraction_rules.of_session(scope, journal.ref, MemoryStrategyConfig())
    return Hearing(rules.blocklist, redacts)


def own_memory(journal: Journal, raw: str, hearing: Hearing) -> MemoryRecord:
    """A memory that was put into a session; what a session holds belongs where the session belongs."""
    record, ref = decode_own(raw), journal.ref
    placed = record.model_copy(
        update={
            "text": hearing.clean(record.text),
            "namespace": record.namespace or ref.namespace,
            "user_id": record.user_id or ref.user_id,
            "session_id": record.session_id or ref.session_id,
            "extraction_strategy": journal.strategy.strategy,
            "persisted_at": datetime.now(UTC),
        }
    )
    placed.memory_hash = record.memory_hash or content_hash(placed)
    return placed
