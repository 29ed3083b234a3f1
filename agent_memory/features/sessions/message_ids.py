"""Ids of messages that are used twice: in a session one id names one message, so that each message has a memory of its own (pure)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import blake2b

from agent_memory_client.models import MAX_ID_BYTES, MemoryMessage

_DIGEST_CHARS = 12


def words_digest(message: MemoryMessage) -> str:
    """What a message says, and who says it."""
    return blake2b(message.role.encode() + b"\0" + message.content.encode(), digest_size=9).hexdigest()


def with_distinct_ids(messages: Sequence[MemoryMessage]) -> list[MemoryMessage]:
    """The messages, of which those that have the id of an earlier one and say something else get another id."""
    first: dict[str, str] = {}
    distinct: list[MemoryMessage] = []
    for message in messages:
        if first.setdefault(message.id, digest := words_digest(message)) != digest:
            message = with_other_id(message)
            first.setdefault(message.id, digest)
        distinct.append(message)
    return distinct


def with_other_id(message: MemoryMessage) -> MemoryMessage:
    """The message with an id that follows from its own and from what it says: the same one whenever it is written again."""
    ending = f"~{words_digest(message)[:_DIGEST_CHARS]}"
    beginning = message.id.encode()[: MAX_ID_BYTES - len(ending)].decode(errors="ignore")
    return message.model_copy(update={"id": beginning + ending})


def reuse_notices(sent: Sequence[MemoryMessage], stored: Sequence[MemoryMessage]) -> Collection[str]:
    """What the caller is told of messages that were stored under another id than they were sent with."""
    return [
        f"messages.{position}.id: names another message of the session; this one has the id {new.id!r}"
        for position, (old, new) in enumerate(zip(sent, stored, strict=True))
        if old.id != new.id
    ]
