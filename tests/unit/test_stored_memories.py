"""What stands in Redis is read without being checked again, also when another version wrote it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agent_memory.storage.codec import decode_memory
from agent_memory_client.models import ANSWER, Evidence, MemoryRecord, MemoryTypeEnum

_AT = datetime(2026, 5, 1, 12, 30, 0, 250_000, tzinfo=UTC)
_FULL = MemoryRecord(
    id="m",
    text="Ada plays the violin",
    user_id="ada",
    topics=["music"],
    created_at=_AT,
    event_date=_AT,
    expires_at=_AT,
    memory_type=MemoryTypeEnum.EPISODIC,
    metadata={"a": [1, {"b": 2.5}], "c": None},
    evidence=[Evidence(session_id="s", message_ids=["x"], at=_AT)],
    trust=0.5,
)


@pytest.mark.parametrize(
    "raw",
    [
        MemoryRecord(id="m", text="x").model_dump_json(),
        _FULL.model_dump_json(),
        _FULL.model_dump_json(exclude_none=True),
        _FULL.model_dump_json(exclude={"metadata", "updated_at"}).replace("{", '{"new_field": 1, ', 1),
        '{"id": "m", "text": "x", "created_at": "2026-05-01T14:30:00+02:00", "last_accessed": 1777638600, "memory_type": "semantic"}',
    ],
    ids=["plain", "full", "without nulls", "of another version", "of a program"],
)
def test_it_is_what_pydantic_would_read(raw: str) -> None:
    wanted, found = MemoryRecord.model_validate_json(raw, context=ANSWER), decode_memory(raw.encode())
    for name in ("topics", "entities", "extracted_from"):
        setattr(wanted, name, getattr(wanted, name) or [])
    made = {"updated_at", "created_at", "last_accessed"} - wanted.model_fields_set
    assert found.model_copy(update={name: getattr(wanted, name) for name in made}) == wanted
    assert found.model_fields_set == wanted.model_fields_set
    assert [*vars(found)] == [*vars(wanted)]
    assert all(moment.tzinfo is UTC for moment in vars(found).values() if isinstance(moment, datetime))
