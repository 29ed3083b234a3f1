"""Build the arguments for `session_write.lua` and parse its reply."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agent_memory.features.sessions.agent_sessions import agent_refusal
from agent_memory.features.sessions.codec import encode_beside, encode_message, message_identity
from agent_memory.foundation.core.clock import iso
from agent_memory.foundation.core.errors import BadInput, IdTaken, VersionMismatch
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.storage.keyspace import tag
from agent_memory.foundation.storage.scripts import Arg, compact
from agent_memory_client.models import MemoryMessage, MemoryRecord, MemoryStrategyConfig

# The number of dropped messages that a session still recognizes in a late retry.
REMEMBERED_IDS = 1000
# The field of a session's hash that holds its import's source, until a client writes to the session.
IMPORT_FIELD = "im"


@dataclass(slots=True)
class NewMessage:
    """A message to write. If `promote` is true, background tasks process it.

    If `promote_correction` is true, they also process it when a PUT changes the stored text.
    """

    message: MemoryMessage
    tokens: int
    promote: bool = True
    promote_correction: bool = False
    writer: str | None = None
    is_compared: bool = False

    def arguments(self) -> list[Arg]:
        message, promote = self.message, 1 if self.promote else 2 * self.promote_correction
        return [message_identity(message), self.tokens, promote, encode_message(message, self.writer), encode_beside(message)]


@dataclass(frozen=True, slots=True)
class MovedSession:
    """An imported session's times, and fields used by other features.

    If `seconds_left` is None, the session's TTL applies.
    """

    created_at: datetime
    updated_at: datetime
    seconds_left: int | None = None
    fields: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(slots=True)
class SessionWrite:
    """A PUT or an append. For None fields, a PUT removes the stored value and an append keeps it.

    `waiting` lists the positions of memories to promote. `fed_back` is true if messages repeat text
    from a memory prompt.
    """

    mode: str
    messages: Sequence[NewMessage]
    context: str | None = None
    context_tokens: int = 0
    data: dict[str, Any] | None = None
    memories: Sequence[MemoryRecord] = ()
    waiting: Sequence[int] = ()
    strategy: MemoryStrategyConfig | None = None
    agent_id: str | None = None
    ttl_seconds: int | None = None
    client_tokens: int = 0
    created_at: datetime | None = None
    last_accessed: datetime | None = None
    window: int | None = None
    default_window: int = 16000
    summarize_ratio: float = 0.0
    extract_after_ms: int = -1
    extract_within_ms: int = 0
    if_match: str | None = None
    moved: MovedSession | None = None
    extract_tokens: int = 0
    fed_back: bool = False
    distinct_ids: bool = False
    """If true, a message that reuses another message's id gets a different id."""
    empty: Sequence[int] = ()
    """Positions of empty messages, allowed only if the session has other content for them."""
    replaces: bool = False
    """If true, an append replaces the session and its pending work."""
    compare: Callable[[Sequence[NewMessage]], Awaitable[None]] | None = None
    """Called with new messages whose ids have memories from a deleted session."""


@dataclass(slots=True)
class SessionStamp:
    """A session's state after a write.

    `created` is in µs, and `caller_created_at` is in ISO 8601. `epoch` identifies the session until
    it is deleted. `restored_content` pairs message positions with the non-text content that was
    restored.
    """

    version: int
    tokens: int
    messages: int
    added: int
    epoch: str
    created: int
    caller_created_at: str | None = None
    restored_content: Sequence[tuple[int, bytes]] = ()


class MessageIdsReused(Exception):
    """Raised if messages (at `positions`) have the ids of other messages in the session."""

    def __init__(self, positions: Sequence[int]) -> None:
        super().__init__("message ids are reused")
        self.positions = positions


class MessagesRemembered(Exception):
    """Raised if messages (at `positions`) are new to the session, but already have memories."""

    def __init__(self, positions: Sequence[int]) -> None:
        super().__init__("messages have memories")
        self.positions = positions


def write_arguments(scope: Scope, ref: SessionRef, change: SessionWrite) -> dict[str, Any]:
    identity = ["tn", scope.tenant, "sid", ref.session_id]
    doc = ["t", tag(scope.tenant), "s", tag(ref.session_id)]
    if ref.namespace is not None:
        identity += ["ns", ref.namespace]
        doc += ["ns", tag(ref.namespace)]
    if ref.user_id is not None:
        identity += ["us", ref.user_id]
        doc += ["u", tag(ref.user_id)]
    strategy = None if change.strategy is None else change.strategy.model_dump_json()
    values: dict[str, str | int | None] = {
        "ctx": change.context,
        "ct": change.context_tokens or None,
        "data": None if change.data is None else compact(change.data),
        "mems": compact([record.model_dump(mode="json") for record in change.memories]) if change.memories else None,
        "st": strategy,
        "ag": change.agent_id,
        "ttl": change.ttl_seconds,
        "tok": change.client_tokens or None,
        "co": None if change.created_at is None else iso(change.created_at),
        "la": None if change.last_accessed is None else iso(change.last_accessed),
        "cw": change.window,
    }
    stored_fields = [part for name, value in values.items() if value is not None for part in (name, str(value))]
    removed_fields = [name for name, value in values.items() if value is None and name != "co"] if change.mode == "put" else []
    removed_fields += [IMPORT_FIELD] if change.moved is None else []
    ttl = -1 if change.ttl_seconds is None else change.ttl_seconds
    updated_at = None
    if change.moved is not None:
        updated_at = micros(change.moved.updated_at)
        stored_fields += [part for pair in change.moved.fields.items() for part in pair]
        # If a field has two values, the last one wins, so an imported session is listed by its own time.
        doc += ["c", micros(change.moved.created_at)]
        if change.moved.seconds_left is not None:
            ttl = change.moved.seconds_left
    same = ("mode", "window", "default_window", "summarize_ratio", "extract_after_ms", "extract_within_ms", "fed_back")
    return {
        **{name: getattr(change, name) for name in same},
        # For the script, "" would mean that there is no condition.
        "if_match": "-" if change.if_match == "" else change.if_match,
        "ttl": ttl,
        "summary": change.context,
        "strategy": strategy,
        "extract_tokens": change.extract_tokens or None,
        "remembered_ids": REMEMBERED_IDS,
        "updated_at": updated_at,
        "fields": {"create": identity, "doc": doc, "set": stored_fields, "unset": removed_fields, "empty": list(change.empty)}
        | ({} if scope.agents is None else {"agents": sorted(scope.agents)})
        | ({"agent": tag(change.agent_id or "")} if change.agent_id is not None or change.mode == "put" else {})
        | {name: True for name in ("replaces", "distinct_ids") if getattr(change, name)},
    }


def micros(moment: datetime) -> str:
    return str(round(moment.timestamp() * 1_000_000))


def read_stamp(reply: Any, promoted: Sequence[int]) -> SessionStamp:
    """Parse the reply from `session_write.lua`.

    `promoted` lists the positions of memories to promote. Raises MessageIdsReused,
    MessagesRemembered, VersionMismatch, IdTaken, BadInput or Forbidden.
    """
    refuse_mismatch(reply)
    if reply[0] == b"agent":
        raise agent_refusal()
    if reply[0] == b"reused":
        raise MessageIdsReused(list(map(int, reply[1:])))
    if reply[0] == b"remembered":
        raise MessagesRemembered(list(map(int, reply[1:])))
    if reply[0] == b"taken":
        raise IdTaken([], field=f"memories.{promoted[int(reply[1])]}.id")
    if reply[0] == b"empty":
        field = f"messages.{int(reply[1])}.content"
        raise BadInput("must not be blank: give at least one character that is not white space", field=field)
    _, version, tokens, count, added, epoch, created, caller_created_at, restored = reply
    restored_content = list(zip(map(int, restored[::2]), restored[1::2], strict=True))
    return SessionStamp(
        int(version),
        int(tokens),
        int(count),
        int(added),
        epoch.decode(),
        int(created),
        caller_created_at.decode() or None,
        restored_content,
    )


def refuse_mismatch(reply: Any) -> None:
    if reply[0] == b"mismatch":
        current = int(reply[1])
        raise VersionMismatch(
            f"If-Match does not match the stored version ({current or 'none'}): read it again and send its ETag", current=current
        )
