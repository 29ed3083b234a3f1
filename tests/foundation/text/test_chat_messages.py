"""Test where a chat session may be split, and which parts of a message are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.foundation.text.chat_messages import MEDIA_TOKENS, ToolCallLinks, counted, lacks_calls, links_of, whole_from
from agent_memory_client.models import MemoryMessage


@dataclass
class Turn:
    links: ToolCallLinks | None = None


def turns(words: str) -> list[Turn]:
    """Parse messages: "a" is text, "!x" calls x, "?x" is its result, and "!x!y" calls both."""
    found: list[Turn] = []
    for word in words.split():
        calls = [part[0] for part in word.split("!")[1:]]
        answers = [part[0] for part in word.split("?")[1:]]
        found.append(Turn(ToolCallLinks(calls, answers) if calls or answers else None))
    return found


@pytest.mark.parametrize(
    ("words", "start", "place"),
    [
        ("a a a a", 2, 2),
        ("a !x ?x a", 1, 1),
        ("a !x ?x a", 2, 3),
        ("a !x!y ?y ?x a a", 2, 4),
        ("a !x!y ?y ?x a a", 3, 4),
        ("a a !x ?x", 3, 2),
        ("!x ?x ?x", 1, 0),
        ("!x ?x !x ?x a", 2, 2),
        ("!x ?x !x ?x a", 3, 4),
        ("a ?z a a", 1, 2),
        ("a ?z a a", 0, 0),
        ("a !x a ?x a", 2, 4),
        ("a !x a", 2, 2),
    ],
)
def test_cut_never_separates_a_call_from_its_answers(words: str, start: int, place: int) -> None:
    assert whole_from(turns(words), start) == place


@given(st.lists(st.sampled_from(["a", "!x", "!y", "!x!y", "?x", "?y"]), min_size=1, max_size=30), st.integers(0, 30))
def test_any_cut_keeps_the_call_of_every_answer(words: list[str], start: int) -> None:
    every = turns(" ".join(words))
    place = whole_from(every, min(start, len(every) - 1))
    assert 0 <= place < len(every)
    called: dict[str, int] = {}
    for at, turn in enumerate(every):
        called.update(dict.fromkeys(turn.links.calls if turn.links else (), at))
        for name in turn.links.answers if turn.links and at >= place else ():
            assert called.get(name, place) >= place


def test_missing_tool_call_is_detected() -> None:
    assert lacks_calls(turns("a ?x"))
    assert not lacks_calls(turns("!x a ?x"))


@pytest.mark.parametrize(
    ("message", "calls", "answers"),
    [
        ({"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]}, ["a", "b"], []),
        ({"role": "tool", "content": "x", "tool_call_id": "a"}, [], ["a"]),
        ({"role": "assistant", "content": None, "function_call": {"name": "f"}}, ["function f"], []),
        ({"role": "function", "content": "x", "name": "f"}, [], ["function f"]),
        ({"role": "user", "content": "x", "name": "ada"}, [], []),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]}, ["a"], []),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}, [], ["a"]),
        ({"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "a"}]}, ["a"], []),
        ({"role": "tool", "content": [{"type": "tool-result", "toolCallId": "a"}]}, [], ["a"]),
        ({"role": "assistant", "content": "x", "tool_calls": "odd", "tool_call_id": {"odd": 1}}, [], ["{'odd': 1}"]),
        ({"role": "assistant", "content": "x", "tool_calls": [1, {"id": None}, {"id": 5}], "function_call": []}, ["5"], []),
    ],
)
def test_tool_calls_and_answers_are_recognized_in_all_formats(message: dict[str, Any], calls: list[str], answers: list[str]) -> None:
    model = MemoryMessage.model_validate(message)
    assert links_of(model.role, model.content_parts, model.own_fields) == ToolCallLinks(calls, answers)


def count(**fields: Any) -> tuple[str, int]:
    return counted(MemoryMessage.model_validate({"role": "user", **fields}))


def test_plain_text_is_counted_unchanged() -> None:
    assert count(content="hello") == ("hello", 0)
    assert count(content=[{"type": "text", "text": "hello"}]) == ("hello", 0)
    assert count(content="hello", refusal=None, tool_calls=[]) == ("hello", 0)


def test_tool_calls_are_counted() -> None:
    text, media = count(content=None, tool_calls=[{"id": "a", "function": {"name": "weather", "arguments": '{"city": "Porto"}'}}])
    assert "weather" in text
    assert "Porto" in text
    assert media == 0


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 50_000}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 50_000}},
        {"type": "input_audio", "input_audio": {"data": "A" * 50_000, "format": "wav"}},
        {"type": "file", "file": {"file_id": "file-1"}},
    ],
)
def test_media_parts_count_a_fixed_number_of_tokens(part: dict[str, Any]) -> None:
    text, media = count(content=[part])
    assert media == MEDIA_TOKENS
    assert len(text) < 300
