"""Test that misspelled owner fields are errors and other ignored fields are reported."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_memory.foundation.core.input.unknown_fields import FieldCheck, Unknown, UnknownFields, ignored_names, nearest
from agent_memory_client.models import (
    CreateMemoryRecordRequest,
    ForgetRequest,
    MemoryPromptRequest,
    SearchRequest,
    UpdateWorkingMemory,
)

SEARCH = frozenset(SearchRequest.model_fields)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        *(
            (name, "user_id")
            for name in ("userid", "userId", "USER_ID", "user", "User", "usr_id", "user_ids", "user-id", "uesr_id", "_user_id")
        ),
        *((name, "namespace") for name in ("name_space", "nameSpace", "namespaces", "namespce", "namespace_id")),
        *((name, "session_id") for name in ("session", "sessionId", "sesion_id", "sessionID")),
        *((name, "agent_id") for name in ("agent", "agentId")),
        ("topic", "topics"),
        ("memory_types", "memory_type"),
        ("filters", "filter"),
        ("slots", "slot"),
    ],
)
def test_misspelled_owner_and_filter_fields_are_recognized(name: str, meant: str) -> None:
    assert nearest(name, SEARCH) == meant


@pytest.mark.parametrize(
    "name",
    [
        "sort",
        "plot",
        "foo",
        "query",
        "model",
        "uid",
        "tags",
        "unsaved",
        "new_session",
        "",
        "_",
        "id",
        "x" * 10_000,
        "日本",
        "include_inactive",
    ],
)
def test_unrelated_field_names_are_not_suggested(name: str) -> None:
    assert nearest(name, SEARCH) is None


def test_only_fields_of_the_model_are_suggested() -> None:
    assert nearest("topic", UpdateWorkingMemory.model_fields) is None
    assert nearest("user", ForgetRequest.model_fields) is None
    assert nearest("session_id", MemoryPromptRequest.model_fields) == "session"


def read(model: Any, *, strict: bool = False, **fields: Any) -> tuple[Any, list[str]]:
    value, ignored = FieldCheck(model).read(lambda check: check.validate_json(json.dumps(fields)), strict=strict)
    return value, [".".join(map(str, one.path)) for one in ignored]


RECORD = {"id": "a", "text": "a fact"}


def test_valid_request_is_parsed_once_with_no_ignored_fields() -> None:
    seen: list[Any] = []

    def validate(check: Any) -> Any:
        seen.append(check)
        return check.validate_json(b'{"query": "q", "session": {"session_id": "s"}, "long_term_search": {"filter": {"user_id": "ada"}}}')

    value, ignored = FieldCheck(MemoryPromptRequest).read(validate, strict=True)
    assert (value.query, list(ignored), len(seen)) == ("q", [], 1)


def test_checked_request_equals_what_the_model_parses() -> None:
    fields: dict[str, Any] = {"messages": [{"role": "user", "content": "hi", "id": "m", "created_at": 1, "own": [1]}], "session_id": "s"}
    fields |= {"memories": [RECORD | {"created_at": 1, "updated_at": 1, "last_accessed": 1}], "unsaved": True}
    value, ignored = read(UpdateWorkingMemory, **fields)
    wanted = UpdateWorkingMemory.model_validate(fields)
    assert value.model_dump(exclude={"last_accessed", "created_at", "updated_at"}) == wanted.model_dump(
        exclude={"last_accessed", "created_at", "updated_at"}
    )
    assert value.messages[0].own_fields == {"own": [1]}
    assert ignored == ["unsaved"]


def test_session_id_beside_the_path_is_accepted() -> None:
    value, ignored = read(UpdateWorkingMemory, strict=True, session_id="s", user_id="ada")
    assert (value.user_id, ignored) == ("ada", [])
    assert "session_id" not in value.model_dump()


def test_ignored_fields_are_named_by_their_path() -> None:
    _, ignored = read(MemoryPromptRequest, query="q", foo=1, long_term_search={"sorted": 1}, session={"session_id": "s", "bar": 1})
    assert sorted(ignored) == ["foo", "long_term_search.sorted", "session.bar"]


@pytest.mark.parametrize(
    ("model", "fields", "path", "meant"),
    [
        (SearchRequest, {"userId": "ada"}, "userId", "user_id"),
        (SearchRequest, {"filter": {"and": [{"usr_id": {"eq": "ada"}}]}}, "filter.and.0.usr_id", "user_id"),
        (MemoryPromptRequest, {"query": "q", "user": "ada"}, "user", "user_id"),
        (MemoryPromptRequest, {"query": "q", "session": {"session_id": "s", "name_space": "n"}}, "session.name_space", "namespace"),
        (MemoryPromptRequest, {"query": "q", "long_term_search": {"userid": {"eq": "ada"}}}, "long_term_search.userid", "user_id"),
        (CreateMemoryRecordRequest, {"memories": [RECORD, RECORD | {"userid": "ada"}]}, "memories.1.userid", "user_id"),
        (UpdateWorkingMemory, {"memories": [RECORD | {"userid": "ada"}]}, "memories.0.userid", "user_id"),
    ],
)
def test_misspelled_fields_are_refused_at_any_depth(model: Any, fields: dict[str, Any], path: str, meant: str) -> None:
    with pytest.raises(UnknownFields) as caught:
        read(model, **fields)
    assert [(".".join(map(str, one.path)), one.suggestion) for one in caught.value.fields] == [(path, meant)]


def test_ignored_field_names_are_escaped_and_bounded() -> None:
    assert ignored_names(
        [Unknown(("memories", 0, "a")), Unknown(("memories", 1, "a")), Unknown(("b\r\nx: y",)), Unknown(("ü\ud800",))]
    ) == ("memories.a, b%0D%0Ax: y, %C3%BC%3F")
    assert len(ignored_names([Unknown((f"{number}" * 200,)) for number in range(1000)])) < 2000
