"""Test the limits, defaults and validation of memories, sessions and free-form JSON."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from agent_memory_client.models import (
    ANSWER,
    MAX_JSON_DEPTH,
    MAX_TEXT_BYTES,
    ClientMemoryRecord,
    CreateMemoryRecordRequest,
    CreateSummaryViewRequest,
    EditMemoryRecordRequest,
    ExtractedMemoryRecord,
    MemoryRecord,
    MemoryTypeEnum,
    TaskStatus,
    TaskStatusEnum,
    UpdateWorkingMemory,
    WorkingMemory,
    WorkingMemoryResponse,
)


def problems(model: type[BaseModel], **fields: Any) -> dict[str, str]:
    """Return the validation messages by field."""
    with pytest.raises(ValidationError) as caught:
        model.model_validate(fields)
    return {".".join(map(str, problem["loc"])): problem["msg"] for problem in caught.value.errors()}


def record(**fields: Any) -> ExtractedMemoryRecord:
    return ExtractedMemoryRecord.model_validate({"id": "m", "text": "Ada likes tea.", **fields})


@pytest.mark.parametrize("name", ["topics", "entities", "extracted_from"])
def test_comma_in_tag_is_rejected_with_the_fix(name: str) -> None:
    message = problems(ExtractedMemoryRecord, id="m", text="x", **{name: ["fine", "a,b"]})[name]
    assert "item 1" in message
    assert "split" in message


def test_blank_tags_are_dropped() -> None:
    assert record(topics=["", "tea", "  "]).topics == ["tea"]
    assert record(topics=[]).topics == []


def test_tags_are_limited_in_number_and_size() -> None:
    assert len(record(topics=[f"t{n}" for n in range(64)]).topics or ()) == 64
    assert "topics" in problems(ExtractedMemoryRecord, id="m", text="x", topics=["t"] * 65)
    assert "topics.0" in problems(ExtractedMemoryRecord, id="m", text="x", topics=["t" * 257])
    assert "256 bytes" in problems(ExtractedMemoryRecord, id="m", text="x", topics=["ö" * 129])["topics"]


def test_tags_are_normalized_to_nfc() -> None:
    assert record(topics=["cafe\u0301"]).topics == ["caf\u00e9"]


def test_text_is_limited_in_bytes() -> None:
    assert record(text="x" * MAX_TEXT_BYTES)
    assert "65536 bytes" in problems(ExtractedMemoryRecord, id="m", text="x" * (MAX_TEXT_BYTES + 1))["text"]
    assert "65536 bytes" in problems(ExtractedMemoryRecord, id="m", text="ö" * (MAX_TEXT_BYTES // 2 + 1))["text"]
    assert "blank" in problems(ExtractedMemoryRecord, id="m", text=" ")["text"]


def test_responses_are_parsed_without_request_limits() -> None:
    stored = {"id": "m", "text": "x" * 70_000, "topics": ["a,b"], "extracted_from": ["1,2"], "new_key": 1}
    read = MemoryRecord.model_validate(stored, context=ANSWER)
    assert (read.topics, read.extracted_from, len(read.text)) == (["a,b"], ["1,2"], 70_000)


def test_default_memory_type_depends_on_the_model() -> None:
    assert record().memory_type == "semantic"
    assert ClientMemoryRecord(text="x").memory_type is MemoryTypeEnum.MESSAGE
    assert f"{MemoryTypeEnum.EPISODIC}" == "episodic"
    assert "memory_type" in problems(ExtractedMemoryRecord, id="m", text="x", memory_type="opinion")


def test_session_memory_may_omit_its_id() -> None:
    session = UpdateWorkingMemory.model_validate({"memories": [{"text": "a", "pinned": True}, {"id": "own", "text": "b"}]})
    assert [type(memory) for memory in session.memories] == [ClientMemoryRecord, MemoryRecord]
    assert session.memories[0].pinned is True
    assert len(session.memories[0].id) == 26
    assert session.memories[1].id == "own"
    assert list(problems(UpdateWorkingMemory, memories=[{"id": "", "text": "b"}])) == ["memories.0.MemoryRecord.id"]


def test_session_accepts_memory_instances() -> None:
    made = ClientMemoryRecord(text="x")
    session = WorkingMemory(session_id="s", memories=[made, MemoryRecord(id="m", text="y")])
    assert [memory.id for memory in session.memories] == [made.id, "m"]


def test_a_session_id_in_the_body_is_ignored() -> None:
    assert "session_id" not in UpdateWorkingMemory.model_validate({"session_id": "a/b"}).model_dump()


def test_fields_of_older_servers_are_read_but_never_sent() -> None:
    session = WorkingMemoryResponse.model_validate({"session_id": "s", "unsaved": True})
    assert session.unsaved is True
    assert {"unsaved", "new_session"}.isdisjoint(session.model_dump())
    assert {"unsaved", "new_session"}.isdisjoint(WorkingMemoryResponse.model_json_schema(mode="serialization")["properties"])


@pytest.mark.parametrize("ttl", [None, 0, -5, 3600])
def test_valid_ttls_are_accepted(ttl: int | None) -> None:
    assert UpdateWorkingMemory.model_validate({"ttl_seconds": ttl}).ttl_seconds == ttl


def test_numbers_that_redis_cannot_hold_are_refused() -> None:
    assert "ttl_seconds" in problems(UpdateWorkingMemory, ttl_seconds=10**12)
    assert "tokens" in problems(UpdateWorkingMemory, tokens=-1)
    assert "tokens" in problems(UpdateWorkingMemory, tokens=2**53)
    assert "access_count" in problems(ExtractedMemoryRecord, id="m", text="x", access_count=-1)


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for level in range(levels - 1):
        value = {"a": value} if level % 2 else {"a": [value]}
    return value


def depth(value: Any) -> int:
    match value:
        case dict():
            return 1 + max(map(depth, value.values()), default=0)
        case list():
            return 1 + max(map(depth, value), default=0)
        case _:
            return 0


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=("Cs",))),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet=st.characters(exclude_categories=("Cs",))), inner, max_size=3)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text(alphabet=st.characters(exclude_categories=("Cs",))), JSON, max_size=4))
def test_json_objects_are_stored_unchanged(data: dict[str, Any]) -> None:
    assert depth(data) <= MAX_JSON_DEPTH
    assert UpdateWorkingMemory.model_validate({"data": data}).data == data
    assert record(metadata=data).metadata == data


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf"), {1: 2}, object(), b"x", (1,)])
@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [value], lambda value: {"k": [{"k": value}]}])
def test_values_outside_json_are_rejected(bad: Any, wrap: Any) -> None:
    assert list(problems(UpdateWorkingMemory, data={"key": wrap(bad)})) == ["data"]
    assert list(problems(ExtractedMemoryRecord, id="m", text="x", metadata={"key": wrap(bad)})) == ["metadata"]


def test_nesting_is_limited_to_32_levels() -> None:
    deepest = nested(17)
    assert depth(deepest) <= MAX_JSON_DEPTH
    assert UpdateWorkingMemory.model_validate({"data": deepest}).data == deepest
    assert "32 levels" in problems(UpdateWorkingMemory, data=nested(40))["data"]
    assert "32 levels" in problems(UpdateWorkingMemory, data={"a": nested(100_000)})["data"]


def test_nesting_limit_is_exact() -> None:
    value: dict[str, Any] = {}
    for _ in range(MAX_JSON_DEPTH - 1):
        value = {"a": value}
    assert UpdateWorkingMemory.model_validate({"data": value}).data == value
    assert "flatten" in problems(UpdateWorkingMemory, data={"a": value})["data"]


def test_an_edit_clears_with_empty_values_and_skips_null() -> None:
    edit = EditMemoryRecordRequest.model_validate({"namespace": "", "topics": [], "text": None, "pinned": False})
    assert edit.namespace == ""
    assert edit.topics == []
    assert edit.text is None
    assert edit.pinned is False
    assert "text" in problems(EditMemoryRecordRequest, text="")
    assert "user_id" in problems(EditMemoryRecordRequest, user_id=" ")


def test_create_deduplicates_by_default() -> None:
    assert CreateMemoryRecordRequest.model_validate({"memories": []}).deduplicate is True
    assert "memories.0.id" in problems(CreateMemoryRecordRequest, memories=[{"text": "x"}])


def test_summary_view_request_accepts_nulls() -> None:
    view = CreateSummaryViewRequest.model_validate({"source": "long_term", "filters": None, "continuous": None})
    assert (view.filters, view.continuous, view.group_by) == ({}, False, [])
    assert "source" in problems(CreateSummaryViewRequest, source="elsewhere")
    assert "time_window_days" in problems(CreateSummaryViewRequest, source="long_term", time_window_days=0)


def test_completed_is_an_alias_of_success() -> None:
    assert TaskStatus.COMPLETED is TaskStatusEnum.SUCCESS
    assert TaskStatusEnum("success") == "success"
