"""Test the parser that finds a JSON object in any model answer."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from agent_memory.features.extraction.prompts import ExtractionAnswer
from agent_memory.features.sessions.prompts import SummaryAnswer
from agent_memory.foundation.llm.openai.structured import UnusableAnswer, may_be_about_format, parse_answer, strict_schema


class Pair(BaseModel):
    """A model with a default value and a field that is named like a JSON Schema keyword."""

    default: str = "x"
    title: int


@pytest.mark.parametrize(
    "text",
    [
        '{"default": "a", "title": 1}',
        'Sure:\n```json\n{"default": "a", "title": 1}\n```',
        'Sure:\n```\n{"default": "a", "title": 1}\n```\nor ```{}```',
        'prose {not json} [1, 2] then {"default": "a", "title": 1} and {"title": 2}',
        '<think>{"title": 9}</think> {"default": "a", "title": 1}',
        '{"default": "a", "title": 1, "extra": [[[]]]}',
    ],
)
def test_first_usable_value_is_parsed(text: str) -> None:
    assert parse_answer(text, Pair) == Pair(default="a", title=1)


@pytest.mark.parametrize("text", ["", "no", "{", "[" * 100_000, '{"a":' * 50_000, '{"title": "x"}', "null", "[1, 2]", "{} " * 1000])
def test_answer_without_a_usable_value_is_refused(text: str) -> None:
    with pytest.raises(UnusableAnswer):
        parse_answer(text, Pair)


def test_bare_lists_and_plain_text_summaries_of_small_models_are_accepted() -> None:
    assert parse_answer('[{"text": "a fact"}]', ExtractionAnswer).memories[0].text == "a fact"
    assert parse_answer("We met Rex.", SummaryAnswer).summary == "We met Rex."
    for text in ('{"summary": "cut of', "<html>", "```json\n{", "[]", ""):
        with pytest.raises(UnusableAnswer):
            parse_answer(text, SummaryAnswer)


def test_unusable_answer_names_the_invalid_field() -> None:
    with pytest.raises(UnusableAnswer, match="title: "):
        parse_answer('{"title": "x"}', Pair)


def test_strict_schemas_require_everything_and_drop_only_keywords() -> None:
    schema = strict_schema(Pair)
    assert schema["required"] == ["default", "title"]
    assert set(schema["properties"]) == {"default", "title"}
    assert schema["additionalProperties"] is False
    fact = strict_schema(ExtractionAnswer)["$defs"]["ExtractedFact"]
    assert set(fact["required"]) == set(fact["properties"])
    assert "maxLength" not in fact["properties"]["text"]


@pytest.mark.parametrize(
    ("status", "detail", "expected"),
    [
        (400, "response_format is not supported", True),
        (404, "No endpoints found that can handle json_schema", True),
        (422, "extra fields not permitted", True),
        (404, "The model `x` does not exist", False),
        (404, "model 'x' not found, try pulling it first", False),
        (413, "too big", False),
    ],
)
def test_format_refusals_are_distinguished_from_other_refusals(status: int, detail: str, expected: bool) -> None:
    assert may_be_about_format(status, detail) is expected
