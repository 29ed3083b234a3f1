"""A memory's record as JSON, as it stands in Redis."""

from __future__ import annotations

from agent_memory_client.models import ANSWER, MemoryRecord, SourceClass


def encode_memory(record: MemoryRecord, source: SourceClass, trust: float) -> bytes:
    """A record as JSON, with its source and trust, without what only its version's hash knows, and without what is None.

    None is what each of those fields is when it is left out.
    """
    stored = record.model_copy(update={"source_class": source, "trust": trust, "recorded_at": None, "retired_at": None})
    return stored.model_dump_json(exclude_none=True).encode()


def decode_memory(raw: bytes) -> MemoryRecord:
    """A stored memory. A promoted message may be longer than a caller's memory.

    Tags that were never given are empty lists, as clients know them.
    """
    record = MemoryRecord.model_validate_json(raw, context=ANSWER)
    record.topics = record.topics or []
    record.entities = record.entities or []
    record.extracted_from = record.extracted_from or []
    return record
