"""Test the validation and normalization of message fields."""

from __future__ import annotations

import json
import unicodedata
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from agent_memory_client.models import (
    MAX_ID_BYTES,
    AppendMessagesRequest,
    ExtractedMemoryRecord,
    MemoryMessage,
    SessionIdentifier,
    UpdateWorkingMemory,
    WorkingMemory,
    is_blank,
)

SURROGATE = "\ud800"


def problems(model: type[BaseModel], **fields: Any) -> dict[str, str]:
    """Return the validation messages by field."""
    with pytest.raises(ValidationError) as caught:
        model.model_validate(fields)
    return {".".join(map(str, problem["loc"])): problem["msg"] for problem in caught.value.errors()}


def message(**fields: Any) -> MemoryMessage:
    return MemoryMessage.model_validate({"role": "user", "content": "hi", **fields})


@pytest.mark.parametrize("content", [" ", "\n\t\r ", "\u2003\u00a0", "\u200b", "\ufeff\u2060", "\u3164 \u2800", "\x00", "\x0b"])
def test_blank_content_is_refused(content: str) -> None:
    assert "must not be blank: give" in problems(MemoryMessage, role="user", content=content)["content"]


@pytest.mark.parametrize("content", ["a\x00b", "a\x1b[0m", "page 1\x0cpage 2", "\u200ba"])
def test_control_characters_are_kept(content: str) -> None:
    assert message(content=content).content == content
    assert message(content=[{"type": "text", "text": content}]).content == content


@pytest.mark.parametrize("content", [SURROGATE, f"a{SURROGATE}b", "\udfff!"])
def test_lone_surrogates_are_replaced(content: str) -> None:
    replaced = "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in content)
    assert message(content=content).content == replaced
    assert message(content=[{"type": "text", "text": content}]).content == replaced
    assert message(x={content: [content]}).own_fields == {"x": {replaced: [replaced]}}
    assert "lone surrogate" in problems(MemoryMessage, role="user", content="a", id=content)["id"]


@pytest.mark.parametrize("content", [1, 1.5, True, {"text": "a"}, b"a"])
def test_content_must_be_a_string(content: Any) -> None:
    assert problems(MemoryMessage, role="user", content=content)["content"] == "Input should be a valid string"


@given(st.text())
def test_text_is_stored_unchanged_or_rejected(text: str) -> None:
    try:
        kept = message(content=text)
    except ValidationError:
        assert is_blank(text) or any(unicodedata.category(character) in ("Cc", "Cs") for character in text)
    else:
        assert kept.content == text
        assert MemoryMessage.model_validate_json(kept.model_dump_json()) == kept


@given(st.text(alphabet=st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=200))
def test_identifiers_are_normalized_to_nfc(text: str) -> None:
    normal = unicodedata.normalize("NFC", text)
    fits = bool(normal.strip()) and len(normal.encode()) <= MAX_ID_BYTES and len(text) <= MAX_ID_BYTES
    try:
        found = message(id=text).id
    except ValidationError:
        assert not fits
    else:
        assert found == normal
        assert message(id=unicodedata.normalize("NFD", text)).id == normal


def test_identifiers_are_limited_to_512_bytes() -> None:
    assert message(id="x" * 512).id == "x" * 512
    assert message(id="ö" * 256).id == "ö" * 256
    assert "512" in problems(MemoryMessage, role="user", content="hi", id="x" * 513)["id"]
    assert "512 bytes" in problems(MemoryMessage, role="user", content="hi", id="ö" * 257)["id"]


@pytest.mark.parametrize("bad", ["", "  ", "a\nb", "a\x00", "a\x85b", SURROGATE, None, 5])
def test_bad_message_ids_are_refused(bad: Any) -> None:
    assert "id" in problems(MemoryMessage, role="user", content="hi", id=bad)


@pytest.mark.parametrize("role", ["user", "assistant", "tool", "system", "developer", "x" * 64, "Ärztin 2"])
def test_any_role_is_accepted(role: str) -> None:
    assert message(role=role).role == role


@pytest.mark.parametrize("role", ["", " ", "x" * 65, "a\nb", None])
def test_bad_roles_are_refused(role: Any) -> None:
    assert "role" in problems(MemoryMessage, role=role, content="hi")


@pytest.mark.parametrize(
    ("given_time", "wanted"),
    [
        ("2024-05-01T12:00:00Z", datetime(2024, 5, 1, 12, tzinfo=UTC)),
        ("2024-05-01T12:00:00", datetime(2024, 5, 1, 12, tzinfo=UTC)),
        ("2024-05-01T12:00:00.123456+02:00", datetime(2024, 5, 1, 10, 0, 0, 123456, tzinfo=UTC)),
        ("2024-05-01", datetime(2024, 5, 1, tzinfo=UTC)),
        (1714564800, datetime(2024, 5, 1, 12, tzinfo=UTC)),
        (1714564800.5, datetime(2024, 5, 1, 12, 0, 0, 500000, tzinfo=UTC)),
        (datetime(2024, 5, 1, 12), datetime(2024, 5, 1, 12, tzinfo=UTC)),
        (datetime(2024, 5, 1, 12, tzinfo=timezone(timedelta(hours=-5))), datetime(2024, 5, 1, 17, tzinfo=UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_times_are_read_as_utc(given_time: Any, wanted: datetime) -> None:
    found = message(created_at=given_time).created_at
    assert found == wanted
    assert found.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    "bad", ["yesterday", "2024-13-01", float("nan"), float("inf"), None, "0001-01-01T00:00:00+14:00", "9999-12-31T23:00:00-14:00"]
)
def test_bad_times_are_refused(bad: Any) -> None:
    assert "created_at" in problems(MemoryMessage, role="user", content="hi", created_at=bad)


def test_times_are_serialized_in_utc_with_z() -> None:
    sent = json.loads(message(created_at="2024-05-01T12:00:00.123456+02:00").model_dump_json())
    assert sent["created_at"] == "2024-05-01T10:00:00.123456Z"


def test_generated_fields_are_distinguishable_from_given_fields() -> None:
    assert message().model_fields_set == {"role", "content"}
    assert {"id", "created_at"} <= message(id="a", created_at=1).model_fields_set
    assert message().id != message().id


def test_append_accepts_1_to_1000_messages() -> None:
    one = {"role": "user", "content": "hi"}
    assert len(AppendMessagesRequest.model_validate({"messages": [one] * 1000}).messages) == 1000
    assert "messages" in problems(AppendMessagesRequest, messages=[])
    assert "messages" in problems(AppendMessagesRequest, messages=[one] * 1001)
    assert "messages.1.content" in problems(AppendMessagesRequest, messages=[one, {"role": "user", "content": " "}])


def test_context_window_accepts_numeric_strings() -> None:
    request = AppendMessagesRequest.model_validate(
        {"messages": [{"role": "user", "content": "hi"}], "context_window_max": "4096", "model_name": "my-own"}
    )
    assert (request.context_window_max, request.model_name) == (4096, "my-own")


SESSION_ID: TypeAdapter[str] = TypeAdapter(SessionIdentifier)


@pytest.mark.parametrize("good", ["a", "chat 1", "ü:1", "a.b", "...", "a%2Fb", "日本"])
def test_valid_session_ids_are_accepted(good: str) -> None:
    assert SESSION_ID.validate_python(good) == good


@pytest.mark.parametrize("bad", ["a/b", "/", ".", "..", "", " ", "a\tb", "x" * 5000])
def test_bad_session_ids_are_refused(bad: str) -> None:
    with pytest.raises(ValidationError):
        SESSION_ID.validate_python(bad)
    assert "session_id" in problems(WorkingMemory, session_id=bad)


def test_empty_scope_counts_as_not_given() -> None:
    session = UpdateWorkingMemory.model_validate({"namespace": "", "user_id": ""})
    assert (session.namespace, session.user_id) == (None, None)
    record = ExtractedMemoryRecord.model_validate({"id": "a", "text": "b", "namespace": "", "user_id": "", "session_id": ""})
    assert (record.namespace, record.user_id, record.session_id) == (None, None, None)
    assert "namespace" in problems(UpdateWorkingMemory, namespace=" ")
