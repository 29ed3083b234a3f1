"""Find a user's latest messages in other sessions before a worker promotes them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import accumulate
from typing import Any

from agent_memory.features.memories.service import message_memory
from agent_memory.features.memories.shown_memories import ShownMemory
from agent_memory.features.sessions.codec import StoredMessage, decode_entry
from agent_memory.foundation.core.permissions import within
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.storage.connection import Pipe
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.lua_files import load
from agent_memory.foundation.storage.search.filters import FILTERS
from agent_memory.foundation.text import terms
from agent_memory.foundation.text.cleaning.context_blocks import context_blocks
from agent_memory.foundation.text.injection import suspicion
from agent_memory.foundation.text.statements import memorable
from agent_memory_client.models import MemoryRecord, SearchRequest

_RECENT = load("sessions/recent_messages")
# The share of the query's words that a message must contain. Nothing ranks these messages against memories yet.
_SHARE = 1 / 3
_MOST = 5
# Filters that unpromoted messages cannot match: they have no tags, trust or versions yet.
_FILTERS = (*(set(FILTERS) - {"user_id", "namespace"}), "min_trust", "quarantined", "as_of", "known_at", "history")

# These limits bound the cost, even if many messages wait. The newest sessions come first.
_LIMITS = {"looked_at": 64, "most_sessions": 16, "most_each": 16, "most": 32, "most_bytes": 16 * 1024}
# Decoding costs a hundred times as much as searching the raw bytes.
_DECODED = 6


@dataclass(slots=True)
class RecentQuery:
    """A search for a user's unpromoted messages. If `namespaces` is None, it covers all namespaces."""

    scope: Scope
    user_id: str
    namespaces: Collection[str] | None
    request: SearchRequest


class RecentMessages:
    def __init__(self, settings: Settings, keys: Keys) -> None:
        self._longterm = settings.longterm
        self._keys = keys
        self._context = context_blocks(settings.longterm.context_tags)

    def recent_query(self, scope: Scope, request: SearchRequest) -> RecentQuery | None:
        """Return the query, or None if the search has unsupported filters.

        The search must specify exactly one user and at most one namespace.
        """
        longterm = self._longterm
        user, namespace = request.user_id, request.namespace
        if not (longterm.enabled and longterm.promote_messages and terms.query_terms(request.text or "")):
            return None
        if user is None or user.eq is None or user.model_fields_set != {"eq"}:
            return None
        if namespace is not None and (namespace.eq is None or namespace.model_fields_set != {"eq"}):
            return None
        if request.offset or any(getattr(request, name) not in (None, False) for name in _FILTERS):
            return None
        if scope.users is not None and user.eq not in scope.users:
            return None
        only = None if namespace is None or namespace.eq is None else (namespace.eq,)
        return RecentQuery(scope, user.eq, only, request)

    def queue_recent(self, pipe: Pipe, query: RecentQuery, but: SessionRef | None = None) -> int:
        """Queue a read of recent messages outside the session `but`. Return the number of replies."""
        scope = query.scope
        key = self._keys.waiting(scope.tenant, query.user_id)
        without = "" if but is None else self._keys.sid(scope.tenant, but)
        only = scope.namespaces if query.namespaces is None else query.namespaces
        prefix = self._keys.journal_prefix
        command = _RECENT.read_only(user_waiting=key, journal_prefix=prefix, excluded_sid=without, **_LIMITS, namespaces=only or ())
        pipe.execute_command(*command)
        return 1

    def find_recent(self, query: RecentQuery, reply: Any, own_session: SessionRef | None) -> list[ShownMemory]:
        """Return matching messages outside `own_session`, best first."""
        if not reply:
            return []
        query_words = set(terms.query_terms(query.request.text or ""))
        namespace = None if query.request.namespace is None else query.request.namespace.eq
        hits: list[tuple[float, MemoryRecord]] = []
        for ref, stored in _parse_recent(query, reply):
            if ref == own_session or (namespace is not None and ref.namespace != namespace):
                continue
            text = memorable(self._context.outside(stored.message.content), stored.message.role)
            if text is None:
                continue
            share = len(query_words.intersection(terms.terms(text))) / len(query_words)
            if share < _SHARE or (self._longterm.quarantine and suspicion(text, of_user=stored.message.role == "user")):
                continue
            record = message_memory(ref, stored.message, text)
            if within(query.scope, record):
                hits.append((share, record))
        hits.sort(key=lambda hit: -hit[0])
        return [_card(record, share) for share, record in hits[: min(_MOST, query.request.limit)]]


def _card(record: MemoryRecord, share: float) -> ShownMemory:
    card = ShownMemory.of("", record)
    card.set_score(1.0 - share, share, "keyword")
    return card


def _parse_recent(query: RecentQuery, reply: Any) -> list[tuple[SessionRef, StoredMessage]]:
    """Return accessible unpromoted messages, sorted by matching query words and then by recency."""
    scope = query.scope
    waiting: list[tuple[Sequence[Any], bytes]] = []
    for session in reply:
        tenant, _, _, user, _, *entries = session
        if tenant.decode() == scope.tenant and user.decode() == query.user_id:
            waiting += [(session, entry) for entry in entries if not entry.startswith(b"-")]
    beginnings = terms.beginnings(query.request.text or "")
    counts = _count_words([entry for _, entry in waiting], beginnings)
    # Entries with equal counts keep the reply's order, newest first.
    enough = max(1.0, _SHARE * len(beginnings))
    best = nlargest(_DECODED, [index for index, count in enumerate(counts) if count >= enough], key=counts.__getitem__)
    messages: list[tuple[SessionRef, StoredMessage]] = []
    for (_, name, namespace, user, has_namespace, *_), entry in map(waiting.__getitem__, best):
        ref = SessionRef(name.decode(), namespace.decode() if has_namespace else None, user.decode())
        if scope.reaches(ref.namespace, ref.user_id):
            messages.append((ref, decode_entry(entry)))
    return messages


def _count_words(entries: Sequence[bytes], beginnings: Sequence[Sequence[bytes]]) -> list[int]:
    """Count how many query words each entry may contain."""
    text = b"\n".join(entries)  # An entry's JSON has no line breaks.
    text = text.lower() if text.isascii() else text.decode().lower().encode()
    ends = list(accumulate(len(line) + 1 for line in text.split(b"\n")))
    counts = [0] * len(entries)
    for spellings in beginnings:
        holding: set[int] = set()
        for spelling in spellings:
            at = text.find(spelling)
            while at >= 0:
                entry = bisect_right(ends, at)
                holding.add(entry)
                at = text.find(spelling, ends[entry])
        for entry in holding:
            counts[entry] += 1
    return counts
