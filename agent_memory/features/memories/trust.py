"""How far memories are to be trusted, by where they come from: the least of all that they were made of (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from agent_memory.foundation.text.normalization import is_turn
from agent_memory.foundation.text.prompt_marks import PROGRAM_ROLES, TOOL_ROLES
from agent_memory_client.models import MemoryRecord, SourceClass

TRUST: dict[str, float] = {"user": 1.0, "client": 1.0, "assistant": 0.7, "import": 0.6, "inference": 0.6, "tool": 0.3}
"""Of what a user said, a program stated, the assistant said, another server made, a model concluded, a tool fetched."""


def source_of(record: MemoryRecord) -> SourceClass:
    """Where a memory comes from: as it says, else by who said it, else a program stated it."""
    if record.source_class is not None:
        return record.source_class
    if not is_turn(record):
        return "client"
    role = str(record.metadata.get("role", "user"))
    if role in TOOL_ROLES:
        return "tool"
    return "client" if role in PROGRAM_ROLES else "assistant" if role == "assistant" else "user"


def trust_of(record: MemoryRecord, source: SourceClass | None = None) -> float:
    """The least of what it says, of its source (`source`, for who has asked for it), and of the sources that its evidence names."""
    least = TRUST[source or source_of(record)]
    for piece in record.evidence or ():
        if piece.source is not None:
            least = min(least, TRUST[piece.source])
    return least if record.trust is None else min(least, record.trust)


def combine_trust(records: Sequence[MemoryRecord]) -> dict[str, Any]:
    """Source and trust of what is made of several memories: those of the least trusted one."""
    least = min(records, key=trust_of)
    return {"source_class": source_of(least), "trust": trust_of(least)}


def approval(text: str) -> str:
    """What a record carries whose text somebody has approved: it stands for this text only."""
    return blake2b(text.encode("utf-8", "replace"), digest_size=12).hexdigest()
