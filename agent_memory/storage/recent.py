"""What a user said a moment ago: messages of any of the user's sessions that no worker has promoted yet."""

from __future__ import annotations

from typing import Any

from agent_memory.scope import Scope, SessionRef
from agent_memory.storage.codec import StoredMessage, decode_entry
from agent_memory.storage.connection import Pipe
from agent_memory.storage.keys import Keys
from agent_memory.storage.session_scripts import SESSION_RECENT

# However many sessions a user has: those written last are looked at, and so much of them is read.
_SESSIONS = 64
_MESSAGES = 20
_BYTES = 128 * 1024


class RecentMessages:
    """Reads them, as part of a pipeline."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def queue(self, pipe: Pipe, scope: Scope, user_id: str) -> None:
        """Puts the read on a pipeline: one command, one reply."""
        key = self._keys.waiting(scope.tenant, user_id)
        pipe.execute_command("EVAL_RO", SESSION_RECENT, 1, key, self._keys.journal_prefix, _SESSIONS, _MESSAGES, _BYTES)

    def parse(self, scope: Scope, user_id: str, reply: Any) -> list[tuple[SessionRef, StoredMessage]]:
        """The messages of a reply that are to become memories and that the caller may see, sessions written last first."""
        found: list[tuple[SessionRef, StoredMessage]] = []
        for tenant, session, namespace, user, placed, *entries in reply:
            ref = SessionRef(session.decode(), namespace.decode() if placed else None, user.decode())
            # The key says so already; a digest that says otherwise would be ours to notice.
            if tenant.decode() != scope.tenant or ref.user_id != user_id or not _visible(scope, ref):
                continue
            found += [(ref, stored) for stored in map(decode_entry, entries) if stored.promote]
        return found


def _visible(scope: Scope, ref: SessionRef) -> bool:
    namespaces, users = scope.namespaces, scope.users
    return (namespaces is None or ref.namespace in namespaces) and (users is None or ref.user_id in users)
