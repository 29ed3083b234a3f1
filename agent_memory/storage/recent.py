"""What a user said a moment ago: messages of any of the user's sessions that no worker has promoted yet."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from heapq import nlargest
from itertools import accumulate
from typing import Any

from agent_memory.scope import Scope, SessionRef
from agent_memory.storage.codec import StoredMessage, decode_entry
from agent_memory.storage.connection import Pipe
from agent_memory.storage.keys import Keys
from agent_memory.storage.session_scripts import SESSION_RECENT

# A prompt costs the same however much waits: so many sessions are looked at, those written last first, and so many messages are read.
_SESSIONS_LOOKED_AT = 64
_SESSIONS = 16
_MESSAGES_EACH = 16
_MESSAGES = 32
_BYTES = 16 * 1024
# Of these, so many are decoded: reading JSON and words costs a hundred times as much as a look for a few letters.
_DECODED = 6


class RecentMessages:
    """Reads them, as part of a pipeline."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def queue(
        self, pipe: Pipe, scope: Scope, user_id: str, *, but: SessionRef | None = None, namespaces: Collection[str] | None = None
    ) -> None:
        """Puts the read on a pipeline: one command, one reply. The session `but` is left out; `namespaces` are the only ones wanted."""
        key = self._keys.waiting(scope.tenant, user_id)
        without = "" if but is None else self._keys.sid(scope.tenant, but)
        most = (_SESSIONS_LOOKED_AT, _SESSIONS, _MESSAGES_EACH, _MESSAGES, _BYTES)
        only = scope.namespaces if namespaces is None else namespaces
        pipe.execute_command("EVAL_RO", SESSION_RECENT, 1, key, self._keys.journal_prefix, without, *most, *(only or ()))

    def parse(
        self, scope: Scope, user_id: str, reply: Any, beginnings: Sequence[Sequence[bytes]], least: float
    ) -> list[tuple[SessionRef, StoredMessage]]:
        """Those messages of a reply that may hold most words, are to become memories and may be seen by the caller; newest sessions first.

        `beginnings` are what each word of the query may begin with, in lower case; a message must hold this share of them (`least`).
        """
        waiting: list[tuple[Sequence[Any], bytes]] = []
        for session in reply:
            tenant, _, _, user, _, *entries = session
            # The key says so already; a digest that says otherwise would be ours to notice.
            if tenant.decode() == scope.tenant and user.decode() == user_id:
                waiting += [(session, entry) for entry in entries if not entry.startswith(b"-")]
        counts = _held([entry for _, entry in waiting], beginnings)
        # Of those that may hold as many the newest come first, which they did in the reply.
        enough = max(1.0, least * len(beginnings))
        best = nlargest(_DECODED, [place for place, count in enumerate(counts) if count >= enough], key=counts.__getitem__)
        found: list[tuple[SessionRef, StoredMessage]] = []
        for (_, name, namespace, user, placed, *_), entry in map(waiting.__getitem__, best):
            ref = SessionRef(name.decode(), namespace.decode() if placed else None, user.decode())
            if _visible(scope, ref):
                found.append((ref, decode_entry(entry)))
        return found


def _held(entries: Sequence[bytes], beginnings: Sequence[Sequence[bytes]]) -> list[int]:
    """How many of some words each entry may hold. All entries are looked through at once: most words are in few of them."""
    text = b"\n".join(entries)  # JSON has no line breaks
    text = text.lower() if text.isascii() else text.decode().lower().encode()
    ends = list(accumulate(len(line) + 1 for line in text.split(b"\n")))
    counts = [0] * len(entries)
    for spellings in beginnings:
        holding: set[int] = set()
        for spelling in spellings:
            at = text.find(spelling)
            while at >= 0:
                place = bisect_right(ends, at)
                holding.add(place)
                at = text.find(spelling, ends[place])
        for place in holding:
            counts[place] += 1
    return counts


def _visible(scope: Scope, ref: SessionRef) -> bool:
    namespaces, users = scope.namespaces, scope.users
    return (namespaces is None or ref.namespace in namespaces) and (users is None or ref.user_id in users)
