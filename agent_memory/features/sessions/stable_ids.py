"""Make missing message ids of a PUT from the messages' content (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b

from ulid import ULID

from agent_memory.features.sessions.codec import encode_beside
from agent_memory_client.models import MemoryMessage


def with_stable_ids(messages: Sequence[MemoryMessage]) -> list[MemoryMessage]:
    """Return the messages with missing ids filled in, so that the same PUT makes the same session."""
    if all("id" in message.model_fields_set for message in messages):
        return list(messages)
    seen: Counter[tuple[str, str]] = Counter()
    named: list[MemoryMessage] = []
    for message in messages:
        beside = encode_beside(message)
        said = (message.role, f"{message.content}\0{beside}" if beside else message.content)
        if "id" not in message.model_fields_set:
            h = blake2b(f"{message.role}\0{seen[said]}\0{said[1]}".encode(), digest_size=10)
            # A ULID begins with a time.
            moment = message.created_at.timestamp() if "created_at" in message.model_fields_set else 0.0
            stamp = int(max(moment, 0.0) * 1000).to_bytes(6, "big") if moment < 2**48 / 1000 else bytes(6)
            message = message.model_copy(update={"id": str(ULID.from_bytes(stamp + h.digest()))})
        seen[said] += 1
        named.append(message)
    return named
