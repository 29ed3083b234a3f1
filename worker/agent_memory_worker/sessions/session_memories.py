"""Store memories from sessions with the permissions of their writers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from agent_memory.features.memories.commit import ChangeOrigin, MemoryCommits
from agent_memory.features.memories.quarantine.service import screen_caller_record
from agent_memory.features.memories.records import with_session_owner
from agent_memory.features.memories.service import content_hash
from agent_memory.features.memories.similar_memories import SimilarMemoryStore
from agent_memory.features.memories.store import Fence, MemoryStore
from agent_memory.features.memories.write_decisions import decide, independent
from agent_memory.features.sessions.codec import OwnMemory, decode_own
from agent_memory.features.sessions.store import JOURNAL_CONTEXT, Journal
from agent_memory.foundation.api.principals import scope_of_work, scope_of_writer
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.permissions import within
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.text.statements import StatementFilter
from agent_memory.runtime import Runtime
from agent_memory_client.models import MemoryRecord

_SESSION_STATEMENT = ChangeOrigin("client", "stated in a session")
_BEYOND = "the caller that put it into the session has no access to its namespace, user or agent"
_ID_TAKEN = "its id is already used: choose another id, or omit it"

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A memory as stored in the journal (`raw`), submitted (`own`) and converted (`record`)."""

    raw: str
    own: OwnMemory
    record: MemoryRecord


async def store_own(runtime: Runtime, sid: str, journal: Journal, pending: Mapping[str, str], statement_filter: StatementFilter) -> bool:
    """Store pending memories with the permissions of their writers.

    Forbidden memories are rejected, and the session lists the reasons. Return False if the journal
    must be read again.
    """
    if not runtime.settings.longterm.enabled:
        # Long-term memory was switched off after the memories arrived.
        return await _end(runtime, sid, journal, pending, {})
    waiting = await run_in_thread(
        lambda: {name: _waiting(runtime, journal, raw, statement_filter) for name, raw in pending.items()}, sum(map(len, pending.values()))
    )
    refused = {
        name: _BEYOND for name, memory in waiting.items() if not within(scope_of_writer(journal.tenant, memory.own.rights), memory.record)
    }
    allowed = [memory for name, memory in waiting.items() if name not in refused]
    stored: set[str] = set()
    for rights in dict.fromkeys(memory.own.rights for memory in allowed):
        names = await _settle(runtime, sid, journal, [memory for memory in allowed if memory.own.rights == rights], refused)
        if names is None:
            return False
        stored |= names
    if refused and not await _end(runtime, sid, journal, {}, {name: (pending[name], reason) for name, reason in refused.items()}):
        return False
    for name, reason in refused.items():
        subject = {"tenant": journal.tenant, "session_id": journal.ref.session_id, "memory_id": name}
        log.warning("memory of a session not stored", **subject, error=reason)
    return len(stored) + len(refused) == len(pending)


def _waiting(runtime: Runtime, journal: Journal, raw: str, statement_filter: StatementFilter) -> _Waiting:
    own = decode_own(raw)
    placed = with_session_owner(journal.ref, own.record).model_copy(
        update={
            "text": statement_filter.clean(own.record.text),
            "extraction_strategy": journal.strategy.strategy,
            "persisted_at": datetime.now(UTC),
            # No facts are extracted from memories that a caller provides.
            "discrete_memory_extracted": "t",
        }
    )
    placed.memory_hash = own.record.memory_hash or content_hash(placed)
    return _Waiting(raw, own, screen_caller_record(runtime.settings, placed))


async def _settle(runtime: Runtime, sid: str, journal: Journal, waiting: Sequence[_Waiting], refused: dict[str, str]) -> set[str] | None:
    """Store memories from writers with the same permissions.

    Return the stored ids, or None after a concurrent change. Memories whose ids are taken are added
    to `refused`.
    """
    rights = waiting[0].own.rights
    scope = scope_of_writer(journal.tenant, rights)
    written = {memory.record.id: memory.own.written for memory in waiting if memory.own.written is not None}
    raw = {memory.record.id: memory.raw for memory in waiting}
    while waiting_records := [memory.record for memory in waiting if memory.record.id not in refused]:
        now = independent(scope, waiting_records)
        decisions_by_record = await decide(runtime[MemoryStore], runtime[SimilarMemoryStore], scope, now)
        done = {record.id: raw[record.id] for record, _ in decisions_by_record}
        decisions_by_id = [(record.id, decision) for record, decisions in decisions_by_record for decision in decisions]
        outcome = await runtime[MemoryCommits].commit(
            scope,
            [decision for _, decision in decisions_by_id],
            _SESSION_STATEMENT,
            fence=_fence(sid, journal, done, {}),
            background=True,
            allow_pinned=True,
            written=written,
        )
        if not outcome.taken_groups:
            return set(done) if outcome.done else None
        refused.update({decisions_by_id[position][0]: _ID_TAKEN for position in outcome.taken_groups})
    return set()


async def _end(runtime: Runtime, sid: str, journal: Journal, dropped: Mapping[str, str], refused: Mapping[str, tuple[str, str]]) -> bool:
    """Remove memories from the journal without storing them. Return False if the session changed."""
    fence = _fence(sid, journal, dropped, refused)
    return (await runtime[MemoryCommits].commit(scope_of_work(journal.tenant), [], _SESSION_STATEMENT, fence=fence)).done


def _fence(sid: str, journal: Journal, own: Mapping[str, str], refused: Mapping[str, tuple[str, str]]) -> Fence:
    """Return a fence that keeps the cursor and removes unchanged memories from the journal."""
    return Fence(sid, journal.epoch, "jp", journal.start, journal.start, JOURNAL_CONTEXT, own=own, refused=refused)
