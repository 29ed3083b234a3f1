"""Models that are put together without validation are those that pydantic would make."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import BaseModel

from agent_memory.storage.codec import made, set_fields
from agent_memory_client.models import MemoryMessage, MemoryRecord, MemoryRecordResult, Message, TextContent

_AT = datetime(2026, 3, 1, tzinfo=UTC)
_RECORD = MemoryRecord(id="m", text="Tea", topics=["drinks"], created_at=_AT, updated_at=_AT, last_accessed=_AT)


@pytest.mark.parametrize(
    "model",
    [
        MemoryMessage(role="user", content="hello", id="1", created_at=_AT),
        TextContent(type="text", text="hello"),
        Message(role="user", content=TextContent(type="text", text="hello")),
        MemoryRecordResult(**_RECORD.model_dump(), dist=0.25, score=0.75),
    ],
)
def test_what_is_made_equals_what_model_construct_makes(model: BaseModel) -> None:
    values = dict(model)
    given, wanted = made(type(model), dict(values)), type(model).model_construct(**values)
    assert given == wanted == model
    assert given.model_dump_json() == wanted.model_dump_json()
    assert given.model_fields_set == wanted.model_fields_set
    assert (given.__pydantic_extra__, given.__pydantic_private__) == (wanted.__pydantic_extra__, wanted.__pydantic_private__)


def test_fields_that_are_set_are_as_if_they_were_assigned() -> None:
    one, other = _RECORD.model_copy(), _RECORD.model_copy()
    one.access_count, one.entities = 3, ["tea"]
    set_fields(other, access_count=3, entities=["tea"])
    assert one == other
    assert one.model_fields_set == other.model_fields_set
