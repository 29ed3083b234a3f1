"""Test the validation of searches, prompts, filters and filter conditions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from agent_memory_client.models import (
    CreatedAt,
    DateConditions,
    MemoryPromptRequest,
    MemoryPromptResponse,
    MemoryType,
    Message,
    Namespace,
    SearchRequest,
    SystemMessage,
    TagConditions,
    TextContent,
    Topics,
    prompt_messages,
)

DAY_1, DAY_2, DAY_3 = (datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2, 3))


def refusal(**fields: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        SearchRequest.model_validate(fields)
    return "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in caught.value.errors())


@pytest.mark.parametrize(
    ("operators", "wanted"),
    [
        ({"eq": "a"}, TagConditions((("a",),))),
        ({"any": ["a", "b"]}, TagConditions((("a", "b"),))),
        ({"in_": ["a", "b"]}, TagConditions((("a", "b"),))),
        ({"all": ["a", "b"]}, TagConditions((("a",), ("b",)))),
        ({"ne": "a"}, TagConditions((), ("a",))),
        ({"not_eq": "a"}, TagConditions((), ("a",))),
        ({"not_in": ["a", "b"]}, TagConditions((), ("a", "b"))),
        ({"none": ["a", "b"]}, TagConditions((), ("a", "b"))),
        ({"startswith": "a"}, TagConditions((), (), "a")),
        ({"any": ["a", "b"], "none": ["c"], "not_eq": "d"}, TagConditions((("a", "b"),), ("d", "c"))),
        ({"eq": "a", "field": "namespace"}, TagConditions((("a",),))),
    ],
)
def test_tag_operators_resolve_to_conditions(operators: dict[str, Any], wanted: TagConditions) -> None:
    assert Namespace.model_validate(operators).conditions() == wanted


@pytest.mark.parametrize(
    ("operators", "reason"),
    [
        ({}, "give one of eq, ne"),
        ({"eq": None}, "give one of eq, ne"),
        ({"field": "namespace"}, "give one of eq, ne"),
        ({"like": "a"}, "namespace.like"),
        ({"eq": "a", "like": "b"}, "namespace.like"),
        ({"eq": ""}, "namespace.eq: must not be blank"),
        ({"eq": "a", "ne": "b"}, "must not combine 'eq' with 'ne'"),
        ({"any": ["a"], "all": ["b"]}, "must not combine 'any' with 'all'"),
        ({"any": []}, "namespace.any"),
        ({"all": []}, "namespace.all"),
        ({"any": [""]}, "namespace.any.0"),
        ({"startswith": ""}, "namespace.startswith"),
        ({"startswith": "a", "eq": "b"}, "must not combine 'startswith' with 'eq'"),
        ({"startswith": "a", "none": ["b"]}, "must not combine 'startswith' with 'none'"),
        ({"eq": "a", "field": "user_id"}, "namespace.field"),
        ({"eq": "a", "field": "x:{*}"}, "namespace.field"),
    ],
)
def test_invalid_tag_filters_are_rejected(operators: Any, reason: str) -> None:
    assert reason in refusal(namespace=operators)


def test_tag_filter_values_are_normalized_to_nfc() -> None:
    assert Topics(any=["cafe\u0301"]).conditions() == TagConditions((("caf\u00e9",),))


def test_memory_type_filter_accepts_only_known_types() -> None:
    assert MemoryType.model_validate({"any": ["semantic", "episodic"]}).conditions() == TagConditions((("semantic", "episodic"),))
    assert MemoryType.model_validate({"not_in": ["message"], "enum_class": None}).conditions() == TagConditions((), ("message",))
    for bad in ({"eq": "opinion"}, {"any": ["semantic", "x"]}, {"eq": "semantic", "enum_class": "Other"}, {}, {"startswith": "sem"}):
        assert "memory_type" in refusal(memory_type=bad)


@pytest.mark.parametrize(
    ("operators", "wanted"),
    [
        ({"gte": DAY_1, "lt": DAY_2}, DateConditions(DAY_1, True, DAY_2, False)),
        ({"gt": DAY_1, "lte": DAY_2}, DateConditions(DAY_1, False, DAY_2, True)),
        ({"gt": DAY_1, "gte": DAY_1}, DateConditions(DAY_1, False, None, True)),
        ({"gt": DAY_1, "gte": DAY_2}, DateConditions(DAY_2, True, None, True)),
        ({"lt": DAY_2, "lte": DAY_2}, DateConditions(None, True, DAY_2, False)),
        ({"eq": DAY_2}, DateConditions(DAY_2, True, DAY_2, True)),
        ({"ne": DAY_2}, DateConditions(excluded=DAY_2)),
        ({"gt": DAY_1, "ne": DAY_2}, DateConditions(DAY_1, False, None, True, DAY_2)),
        ({"between": [DAY_1, DAY_3]}, DateConditions(DAY_1, True, DAY_3, True)),
        ({"between": [DAY_1, DAY_3], "inclusive": "neither"}, DateConditions(DAY_1, False, DAY_3, False)),
        ({"between": [DAY_1, DAY_3], "inclusive": "left"}, DateConditions(DAY_1, True, DAY_3, False)),
        ({"between": [DAY_1, DAY_3], "inclusive": "right"}, DateConditions(DAY_1, False, DAY_3, True)),
        ({"gte": "2024-01-01", "field": "created_at"}, DateConditions(DAY_1, True, None, True)),
    ],
)
def test_date_operators_combine(operators: dict[str, Any], wanted: DateConditions) -> None:
    assert CreatedAt.model_validate(operators).conditions() == wanted


@pytest.mark.parametrize(
    "operators",
    [
        {},
        {"inclusive": "both"},
        {"between": [DAY_1]},
        {"between": [DAY_1, DAY_2, DAY_3]},
        {"between": [DAY_1, DAY_2], "eq": DAY_1},
        {"between": [DAY_1, DAY_2], "gte": DAY_1},
        {"between": [DAY_1, DAY_2], "inclusive": "outer"},
        {"eq": DAY_1, "ne": DAY_2},
        {"gte": "yesterday"},
        {"gte": float("nan")},
        {"since": DAY_1},
        {"gte": DAY_1, "field": "event_date"},
    ],
)
def test_invalid_date_filters_are_rejected(operators: dict[str, Any]) -> None:
    assert "created_at" in refusal(created_at=operators)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("limit", 0),
        ("limit", 101),
        ("offset", -1),
        ("offset", 1_000_001),
        ("distance_threshold", -0.1),
        ("distance_threshold", float("nan")),
        ("hybrid_alpha", 1.1),
        ("text_scorer", "SUM"),
        ("search_mode", "psychic"),
        ("recency_half_life_created_days", 0),
        ("recency_semantic_weight", float("inf")),
    ],
)
def test_invalid_search_parameters_are_rejected(field: str, value: Any) -> None:
    assert field in refusal(**{field: value})


def test_unknown_search_parameters_are_ignored() -> None:
    assert SearchRequest.model_validate({"text": None, "color": "red"}).limit == 10


def test_prompt_request_accepts_any_model_and_numeric_string_window() -> None:
    request = MemoryPromptRequest.model_validate(
        {
            "query": "Who likes tea?",
            "session": {"session_id": "s", "model_name": "my-litellm-model", "context_window_max": "4096", "user_id": ""},
            "long_term_search": {"text": "tea", "limit": 5},
        }
    )
    assert request.session is not None
    assert (request.session.model_name, request.session.context_window_max, request.session.user_id) == ("my-litellm-model", 4096, None)
    assert isinstance(request.long_term_search, SearchRequest)
    assert MemoryPromptRequest.model_validate({"query": "q", "long_term_search": True}).long_term_search is True


def test_prompt_response_has_the_shape_that_clients_expect() -> None:
    answer = MemoryPromptResponse(
        messages=[
            SystemMessage(content=TextContent(type="text", text="Ada likes tea.")),
            Message(role="user", content=TextContent(type="text", text="Tea?")),
        ]
    )
    plain = {"type": "text", "annotations": None, "_meta": None}
    sent = answer.model_dump(mode="json")
    assert sent["messages"] == [
        {"role": "system", "content": {**plain, "text": "Ada likes tea."}},
        {"role": "user", "content": {**plain, "text": "Tea?"}},
    ]
    assert sent["long_term_memories"] is None
    assert MemoryPromptResponse.model_validate(sent) == answer
    chat = [{"role": "system", "content": "Ada likes tea."}, {"role": "user", "content": "Tea?"}]
    assert answer.to_openai() == chat
    assert prompt_messages(sent) == chat


def test_content_of_any_kind_becomes_a_string() -> None:
    messages = [
        {"role": "user", "content": "plain"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image", "data": "…"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": {"type": "image", "data": "…"}},
    ]
    assert [message["content"] for message in prompt_messages({"messages": messages})] == ["plain", "a\nb", ""]
