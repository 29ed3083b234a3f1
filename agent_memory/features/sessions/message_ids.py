"""Give each message of a session a distinct id, so that each has its own memory (pure)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import blake2b

from agent_memory_client.models import MAX_ID_BYTES, MemoryMessage

_DIGEST_CHARS = 12


def words_digest(message: MemoryMessage) -> str:
    """Return a digest of role and text."""
    return blake2b(message.role.encode() + b"\0" + message.content.encode(), digest_size=9).hexdigest()


def with_distinct_ids(messages: Sequence[MemoryMessage]) -> list[MemoryMessage]:
    """Return the messages; one with the id of an earlier one but other words gets another id."""
    first: dict[str, str] = {}
    distinct: list[MemoryMessage] = []
    for message in messages:
        if first.setdefault(message.id, digest := words_digest(message)) != digest:
            message = with_other_id(message)
            first.setdefault(message.id, digest)
        distinct.append(message)
    return distinct


def with_other_id(message: MemoryMessage) -> MemoryMessage:
    """Return the message with an id made of its own and its words, always the same."""
    ending = f"~{words_digest(message)[:_DIGEST_CHARS]}"
    beginning = message.id.encode()[: MAX_ID_BYTES - len(ending)].decode(errors="ignore")
    return message.model_copy(update={"id": beginning + ending})


def reuse_notices(sent: Sequence[MemoryMessage], stored: Sequence[MemoryMessage]) -> Collection[str]:
    """Return notices for messages that were stored under another id."""
    return [
        f"messages.{position}.id: names another message of the session; this one has the id {new.id!r}"
        for position, (old, new) in enumerate(zip(sent, stored, strict=True))
        if old.id != new.id
    ]
