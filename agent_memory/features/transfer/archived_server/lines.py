"""Convert the archived server's data to export lines."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from agent_memory.features.transfer.archived_server.layout import OldItem, OldKind
from agent_memory.features.transfer.archived_server.records import OldMemory, OldSession, partition_of, view_of
from agent_memory.features.transfer.sources.lines import memory_line
from agent_memory.foundation.core.errors import ModelAnswerInvalid, ModelUnavailable
from agent_memory.foundation.llm.base import Embedder
from agent_memory_client.models import MemoryTypeEnum

_PROBES = 2
# One text's vectors from the same model differ only by rounding. Vectors from two models are unrelated.
_SAME_MODEL = 0.98
# Imported messages precede new ones, whose positions start at 1. A position of this size is accurate to 15 µs.
_BEFORE = 1e11

Line = dict[str, Any]


async def memory_lines(memories: Sequence[OldMemory], embedder: Embedder, mode: str) -> list[Line]:
    """Convert memories to export lines, including old vectors that can be reused."""
    lines: list[Line] = []
    for memory in memories:
        record = memory.record.model_dump(mode="json", exclude_unset=True, exclude_none=True)
        created = memory.record.created_at.timestamp() if "created_at" in record else 0.0
        in_session = memory.record.memory_type is MemoryTypeEnum.MESSAGE and memory.record.session_id is not None
        lines.append(memory_line(record, created, created - _BEFORE if in_session else None))
    vectors = {
        place: vector / np.float32(np.linalg.norm(vector))
        for place, memory in enumerate(memories if mode != "embed" else ())
        if memory.vector is not None
        and len(memory.vector) == 4 * embedder.dimensions
        and np.isfinite(vector := np.frombuffer(memory.vector, dtype="<f4").astype(np.float32)).all()
        and np.linalg.norm(vector) > 1e-6
    }
    if vectors:
        try:
            rows = await embedder.adopt(np.stack(list(vectors.values())))
            probes = range(0, len(rows), max(len(rows) // _PROBES, 1))[:_PROBES] if mode == "auto" else ()
            own = await embedder.embed([memories[list(vectors)[probe]].record.text for probe in probes]) if probes else []
        except (ModelUnavailable, ModelAnswerInvalid):
            return lines
        if all(float(np.dot(rows[probe], vector)) >= _SAME_MODEL for probe, vector in zip(probes, own, strict=True)):
            for place, row in zip(vectors, rows, strict=True):
                lines[place]["now"]["vector"] = base64.b64encode(row.astype("<f4").tobytes()).decode()
    return lines


def session_line(session: OldSession, item: OldItem, *, extract: bool) -> Line:
    """Convert a session to an export line. Processed messages are not processed again."""
    body = session.body
    line = body.model_dump(mode="json", exclude_unset=True, exclude={"messages", "memories", "long_term_memory_strategy"})
    messages = [
        message.model_dump(mode="json", include={"id", "role", "content", "created_at", "persisted_at"}, exclude_unset=True)
        | {"extracted": (extracted := message.discrete_memory_extracted == "t")}
        | {"waits": extract and not extracted and message.persisted_at is None}
        for message in body.messages
    ]
    return line | {
        "kind": "session",
        "id": item.name,
        "messages": messages,
        "memories": [record.model_dump(mode="json", exclude_unset=True, exclude_none=True) for record in body.memories],
        "strategy": body.long_term_memory_strategy.model_dump(mode="json"),
        # If the last PUT had no `ttl_seconds`, it removed any expiry.
        "seconds_left": None if body.ttl_seconds is None else item.seconds_left,
    }


def summary_line(kind: OldKind, item: OldItem, notes: list[str]) -> Line:
    """Convert a summary view or a partition to an export line. Raises UnmovableRecord."""
    raw = item.document or b""
    data = {"view": view_of(raw)} if kind is OldKind.VIEW else {"partition": partition_of(raw, notes)}
    return {"kind": "summary", "id": item.name, **data}
