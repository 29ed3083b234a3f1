"""Remove a source's messages from live sessions, and delete affected summaries."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

from agent_memory.features.memories.records import message_memory_id
from agent_memory.features.memories.service import message_memory
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.privacy.purge_policy import PurgeSource, cites, matches, names_session, whole_import
from agent_memory.features.sessions.agent_sessions import walk_sessions
from agent_memory.features.sessions.codec import SessionState, StoredMessage
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.feature import Group
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.text.normalization import is_turn
from agent_memory.runtime import Runtime
from agent_memory_client.models import MemoryRecord, MemoryTypeEnum, PurgeRequest
from agent_memory_worker.privacy.unreadable import UnreadableRecords

_ATTEMPTS = 20
_NO_WORDS = "-"


async def resolve_source(runtime: Runtime, scope: Scope, request: PurgeRequest, owner: tuple[str | None, str | None]) -> PurgeSource:
    """Return the source of a purge, including the agent's sessions."""
    if (agent_id := request.agent_id) is None:
        return PurgeSource(**dict(request))
    pages = walk_sessions(runtime.client, runtime.keys, scope, *owner, agent_id=agent_id)
    return PurgeSource(**dict(request), agent_sessions=frozenset([ref async for refs in pages for ref in refs]))


class SourceMessages:
    """The source's messages behind deleted or changed memories, by session."""

    def __init__(self, source: PurgeSource) -> None:
        self._source = source
        self.mids: set[str] = set()
        self._ids: defaultdict[SessionRef, set[str]] = defaultdict(set)

    def note(self, record: MemoryRecord) -> None:
        """Record the messages behind a memory version that is deleted or loses evidence."""
        if is_turn(record) and record.session_id is not None:
            self._ids[SessionRef(record.session_id, record.namespace, record.user_id)].update(record.extracted_from or ())
        for piece in record.evidence or ():
            if piece.session_id is not None and cites(self._source, record, piece):
                self._ids[SessionRef(piece.session_id, record.namespace, record.user_id)].update(piece.message_ids)

    def of(self, ref: SessionRef) -> Collection[str]:
        return self._ids.get(ref, ())


async def strike(
    runtime: Runtime,
    scope: Scope,
    source: PurgeSource,
    owner: tuple[str | None, str | None],
    source_messages: SourceMessages,
    unreadable: UnreadableRecords,
    *,
    dry: bool,
) -> tuple[Counter[str], set[Group]]:
    """Remove the source's messages from sessions, and delete imported sessions.

    Return counts, and the groups of the affected sessions.
    """
    counts: Counter[str] = Counter()
    touched: set[Group] = set()
    async for refs in walk_sessions(runtime.client, runtime.keys, scope, *owner):
        imported = await _imported(runtime, scope, source, refs)
        for ref in refs:
            with unreadable.passing_over(f"w:{runtime[SessionStore].sid(scope, ref)}"):
                if ref in imported:
                    struck = Counter(sessions=int(dry or await runtime[SessionStore].delete(scope, ref)))
                else:
                    struck = await _strike_session(runtime, scope, source, ref, source_messages, dry=dry)
                if struck.total():
                    counts += struck
                    touched.add(Group(ref.namespace, ref.user_id, ref.session_id, MemoryTypeEnum.MESSAGE.value))
    return counts, touched


async def _imported(runtime: Runtime, scope: Scope, source: PurgeSource, refs: Sequence[SessionRef]) -> set[SessionRef]:
    if (import_source := whole_import(source)) is None:
        return set()
    sources = await runtime[SessionStore].import_sources(scope, refs)
    return {ref for ref, name in zip(refs, sources, strict=True) if name == import_source}


async def _strike_session(
    runtime: Runtime, scope: Scope, source: PurgeSource, ref: SessionRef, source_messages: SourceMessages, *, dry: bool
) -> Counter[str]:
    for _ in range(_ATTEMPTS):
        state = await runtime[SessionStore].get(scope, ref)
        if state is None:
            break
        bad = [stored for stored in state.messages if _is_of(runtime, scope, source, ref, stored, source_messages)]
        drops = state.context is not None and _may_tell(source, state, bad, source_messages.of(ref))
        if not bad and not drops:
            break
        seqs = [stored.seq for stored in bad]
        if dry or await runtime[SessionStore].strike(scope, ref, state.epoch, state.fence, seqs, drop_context=drops):
            return Counter(messages=len(bad), contexts=int(drops))
    return Counter()


def _is_of(
    runtime: Runtime, scope: Scope, source: PurgeSource, ref: SessionRef, stored: StoredMessage, source_messages: SourceMessages
) -> bool:
    # Match without the text, because some messages, such as tool calls and pictures, have none.
    if stored.message.id in source_messages.of(ref) or matches(source, message_memory(ref, stored.message, _NO_WORDS), None):
        return True
    return runtime[MemoryStore].mid(scope, message_memory_id(ref, stored.message.id)) in source_messages.mids


def _may_tell(source: PurgeSource, state: SessionState, bad: Collection[StoredMessage], message_ids: Collection[str]) -> bool:
    """True if the session's summary may cover the source's messages."""
    if names_session(source, state.ref) and source.source_class is None and source.metadata is None:
        return True
    if message_ids:
        return not {stored.message.id for stored in state.messages}.issuperset(message_ids)
    return bool(bad)
