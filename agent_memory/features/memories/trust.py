"""Trust of memories by their source: the least of all sources they were made from (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from agent_memory.foundation.text.normalization import is_turn
from agent_memory.foundation.text.prompt_marks import PROGRAM_ROLES, TOOL_ROLES
from agent_memory_client.models import MemoryRecord, SourceClass

TRUST: dict[str, float] = {"user": 1.0, "client": 1.0, "assistant": 0.7, "import": 0.6, "inference": 0.6, "tool": 0.3}


def source_of(record: MemoryRecord) -> SourceClass:
    """Return where a memory comes from: its own field, else its speaker, else "client"."""
    if record.source_class is not None:
        return record.source_class
    if not is_turn(record):
        return "client"
    role = str(record.metadata.get("role", "user"))
    if role in TOOL_ROLES:
        return "tool"
    return "client" if role in PROGRAM_ROLES else "assistant" if role == "assistant" else "user"


def trust_of(record: MemoryRecord, source: SourceClass | None = None) -> float:
    """Return the least trust of the record, its source and the sources of its evidence."""
    least = TRUST[source or source_of(record)]
    for piece in record.evidence or ():
        if piece.source is not None:
            least = min(least, TRUST[piece.source])
    return least if record.trust is None else min(least, record.trust)


def combine_trust(records: Sequence[MemoryRecord]) -> dict[str, Any]:
    """Return source and trust of a memory made of several: those of the least trusted."""
    least = min(records, key=trust_of)
    return {"source_class": source_of(least), "trust": trust_of(least)}


def approval(text: str) -> str:
    """Return the mark of an approved text; it is valid for this text only."""
    return blake2b(text.encode("utf-8", "replace"), digest_size=12).hexdigest()
