"""Read your writes: what a user said in other sessions is found by a prompt before a worker has made memories of it."""

from __future__ import annotations

from collections.abc import Sequence

from agent_memory import analysis
from agent_memory.promptmarks import own_words
from agent_memory.scope import Scope, SessionRef
from agent_memory.services.longterm import message_memory
from agent_memory.settings import Settings
from agent_memory.storage.cards import Card
from agent_memory.storage.codec import StoredMessage
from agent_memory.suspicion import suspicion
from agent_memory_client.models import MemoryRecord, SearchRequest

# A message must hold this share of the query's words to be an answer; nothing ranks it against the memories yet.
SHARE = 1 / 3
_MOST = 5
_FILTERS = ("session_id", "topics", "entities", "created_at", "last_accessed", "memory_type", "extraction_strategy", "event_date")


def user_of(settings: Settings, scope: Scope, request: SearchRequest) -> str | None:
    """The user whose unpromoted messages a search may find: it names exactly one, and filters by nothing but user and namespace."""
    longterm = settings.longterm
    user, namespace = request.user_id, request.namespace
    if not (longterm.enabled and longterm.promote_messages and analysis.query_terms(request.text or "")):
        return None
    if user is None or user.eq is None or user.model_fields_set != {"eq"}:
        return None
    if namespace is not None and (namespace.eq is None or namespace.model_fields_set != {"eq"}):
        return None
    if request.offset or any(getattr(request, name) is not None for name in _FILTERS):
        return None
    return user.eq if scope.users is None or user.eq in scope.users else None


def namespaces_of(request: SearchRequest) -> Sequence[str] | None:
    """The only namespaces whose messages count, for a request of `user_of`; None for all."""
    return None if request.namespace is None or request.namespace.eq is None else (request.namespace.eq,)


def beginnings(request: SearchRequest) -> Sequence[Sequence[bytes]]:
    """What the words of a query may begin with in a message."""
    return analysis.beginnings(request.text or "")


def matching(
    settings: Settings, request: SearchRequest, here: SessionRef | None, messages: Sequence[tuple[SessionRef, StoredMessage]]
) -> list[Card]:
    """The messages that share enough words with the query, best first, as the memories that they are about to become.

    Those of the session that the prompt is for are left out: the prompt shows them anyway.
    """
    wanted = set(analysis.query_terms(request.text or ""))
    namespace = None if request.namespace is None else request.namespace.eq
    found: list[tuple[float, SessionRef, StoredMessage, str]] = []
    for ref, stored in messages:
        if ref == here or (namespace is not None and ref.namespace != namespace):
            continue
        text = own_words(stored.message.content, stored.message.role)
        share = len(wanted.intersection(analysis.terms(text))) / len(wanted)
        if share < SHARE or (settings.longterm.quarantine and suspicion(text, of_user=stored.message.role == "user")):
            continue
        if analysis.carries_information(text):
            found.append((share, ref, stored, text))
    found.sort(key=lambda one: -one[0])
    return [_card(message_memory(ref, stored, text), share) for share, ref, stored, text in found[: min(_MOST, request.limit)]]


def _card(record: MemoryRecord, share: float) -> Card:
    card = Card.of("", record)
    card.place(1.0 - share, share, "keyword")
    return card
