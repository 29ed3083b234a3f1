"""Assign unique ids to a session's messages, so that each message gets its own memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b

from ulid import ULID

from agent_memory.features.sessions.codec import encode_beside, words_digest
from agent_memory.features.sessions.session_write import NewMessage
from agent_memory.foundation.core.notices import add_notice
from agent_memory.foundation.text.prompt_marks import PROGRAM_ROLES, TOOL_ROLES
from agent_memory_client.models import MAX_ID_BYTES, MemoryMessage

_DIGEST_CHARS = 12


def with_distinct_ids(messages: Sequence[MemoryMessage]) -> list[MemoryMessage]:
    """Assign a new id to each message that reuses an id with different text."""
    first: dict[str, str] = {}
    distinct: list[MemoryMessage] = []
    for message in messages:
        if first.setdefault(message.id, digest := words_digest(message)) != digest:
            message = with_other_id(message)
            first.setdefault(message.id, digest)
        distinct.append(message)
    return distinct


def with_other_id(message: MemoryMessage) -> MemoryMessage:
    """Return the message with a new id derived from its old id and text."""
    ending = f"~{words_digest(message)[:_DIGEST_CHARS]}"
    beginning = message.id.encode()[: MAX_ID_BYTES - len(ending)].decode(errors="ignore")
    return message.model_copy(update={"id": beginning + ending})


def with_stable_ids(messages: Sequence[MemoryMessage]) -> list[MemoryMessage]:
    """Fill in missing ids deterministically, so that a repeated PUT creates the same session."""
    if all("id" in message.model_fields_set for message in messages):
        return list(messages)
    counts: Counter[tuple[str, str]] = Counter()
    named: list[MemoryMessage] = []
    for message in messages:
        beside = encode_beside(message)
        content_key = (message.role, f"{message.content}\0{beside}" if beside else message.content)
        if "id" not in message.model_fields_set:
            h = blake2b(f"{message.role}\0{counts[content_key]}\0{content_key[1]}".encode(), digest_size=10)
            # A ULID begins with a time.
            moment = message.created_at.timestamp() if "created_at" in message.model_fields_set else 0.0
            stamp = int(max(moment, 0.0) * 1000).to_bytes(6, "big") if moment < 2**48 / 1000 else bytes(6)
            message = message.model_copy(update={"id": str(ULID.from_bytes(stamp + h.digest()))})
        counts[content_key] += 1
        named.append(message)
    return named


def notice_roles(messages: Sequence[MemoryMessage]) -> None:
    """Add a notice for each message with a role that chat APIs do not define."""
    standard_roles = frozenset(("user", "assistant")) | PROGRAM_ROLES | TOOL_ROLES
    for position, message in enumerate(messages):
        if message.role not in standard_roles:
            add_notice(f"messages.{position}.role: {message.role!r} is not a chat API role; the message is treated as a person's")


def stored_messages(named: Sequence[MemoryMessage], written: Sequence[NewMessage]) -> list[MemoryMessage]:
    """Return the stored messages, and add a notice for each changed id."""
    stored = [new.message for new in written]
    for position, (old, new) in enumerate(zip(named, stored, strict=True)):
        if old.id != new.id:
            add_notice(f"messages.{position}.id: is the id of another message in the session; this message got the id {new.id!r}")
    return stored
