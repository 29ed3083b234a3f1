"""Test that messages in chat API formats round-trip, and that `content` is always a string."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from agent_memory_client.models import MemoryMessage, MemoryPromptResponse, prompt_messages

CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Porto"}'}}
PICTURE = {"type": "image_url", "image_url": {"url": "https://example.org/porto.png", "detail": "low"}}
CHATS: dict[str, list[dict[str, Any]]] = {
    "openai tool calls": [
        {"role": "user", "content": "How is the weather in Porto?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": None},
        {"role": "tool", "tool_call_id": "call_1", "content": "21 degrees"},
        {"role": "assistant", "content": "It is warm.", "annotations": []},
    ],
    "a call without a content": [{"role": "assistant", "tool_calls": [CALL]}],
    "a call with an empty content": [{"role": "assistant", "content": "", "tool_calls": [CALL]}],
    "an empty answer": [{"role": "tool", "tool_call_id": "call_1", "content": ""}],
    "a function": [
        {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": "{}"}},
        {"role": "function", "name": "weather", "content": "21 degrees"},
    ],
    "parts": [{"role": "user", "name": "ada", "content": [{"type": "text", "text": "What is this?"}, PICTURE]}],
    "a picture alone": [{"role": "user", "content": [PICTURE]}],
    "a refusal": [{"role": "assistant", "content": None, "refusal": "I cannot help with that."}],
    "a refusal as a part": [{"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}],
    "anthropic": [
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "hm", "signature": "x"}, {"type": "text", "text": "Let me look."}],
        },
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Porto", "days": [1, None]}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "21"}]}]},
    ],
    "unknown fields": [
        {"role": "user", "content": "hi", "metadata": {"a": [1, 2.5, True, None]}, "model_config": 1, "": "empty", "copy": []}
    ],
    "other roles": [{"role": "system", "content": "be kind"}, {"role": "developer", "content": "be brief"}],
}


@pytest.mark.parametrize("chat", CHATS.values(), ids=CHATS)
def test_message_round_trips_to_the_chat_format(chat: list[dict[str, Any]]) -> None:
    assert [MemoryMessage.model_validate(message).to_chat() for message in chat] == chat


@pytest.mark.parametrize("chat", CHATS.values(), ids=CHATS)
def test_message_is_unchanged_after_reading_and_resending(chat: list[dict[str, Any]]) -> None:
    for message in chat:
        answered = MemoryMessage.model_validate(message).model_dump(mode="json")
        assert isinstance(answered["content"], str)
        assert MemoryMessage.model_validate(answered).to_chat() == message


def test_content_joins_the_text_parts() -> None:
    parts = [{"type": "text", "text": "a"}, PICTURE, {"type": "input_text", "text": "b"}, {"type": "reasoning", "text": "unsaid"}]
    message = MemoryMessage.model_validate({"role": "user", "content": parts})
    assert message.content == "a\nb"
    assert message.content_parts == parts


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("given", "field", "why"),
    [
        ({"content": None}, "content", "tool_calls"),
        ({"content": None, "name": "ada"}, "content", "tool_calls"),
        ({"content": None, "tool_calls": []}, "content", "tool_calls"),
        ({"content": []}, "content", "empty list"),
        ({}, "content", "required"),
        ({"content": ["a"]}, "content.0", "object with a type"),
        ({"content": [{"type": "text"}]}, "content.0.text", "string"),
        ({"content": [{"type": "text", "text": 5}]}, "content.0.text", "string"),
        ({"content": [{"type": "image", "data": float("inf")}]}, "content", "Infinity"),
        ({"content": [deep(40)]}, "content", "nested"),
        ({"content": "a", "tool_calls": deep(40)}, "tool_calls", "nested"),
        ({"content": "a", "x": {"y": float("nan")}}, "x", "NaN"),
        ({"content": "a", "content_parts": [{"type": "text", "text": "b"}]}, "content_parts", "leave one"),
        ({"content": "a", "no_content": "null"}, "no_content", "leave one"),
    ],
)
def test_invalid_message_is_rejected_with_the_field_name(given: dict[str, Any], field: str, why: str) -> None:
    with pytest.raises(ValidationError) as caught:
        MemoryMessage.model_validate({"role": "assistant", **given})
    found = {".".join(map(str, problem["loc"])): problem["msg"] for problem in caught.value.errors()}
    assert why in found[field]


def test_prompt_returns_messages_in_the_format_they_were_sent() -> None:
    block = {"type": "text", "text": "", "annotations": None, "_meta": None}
    answer = {
        "messages": [
            {"role": "assistant", "content": block, "no_content": "null", "tool_calls": [CALL]},
            {"role": "assistant", "content": block | {"text": "21"}, "original_role": "tool", "tool_call_id": "call_1"},
            {"role": "user", "content": block | {"text": "see"}, "content_parts": [{"type": "text", "text": "see"}, PICTURE]},
            {"role": "assistant", "content": block | {"text": "aloud"}, "original_role": "tool"},
            {"role": "assistant", "content": block | {"text": "aloud"}, "original_role": "narrator"},
        ]
    }
    chat = [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": "21", "tool_call_id": "call_1"},
        {"role": "user", "content": [{"type": "text", "text": "see"}, PICTURE]},
        # No chat API accepts these two unchanged.
        {"role": "assistant", "content": "aloud"},
        {"role": "assistant", "content": "aloud"},
    ]
    assert prompt_messages(answer) == chat
    assert MemoryPromptResponse.model_validate(answer).to_openai() == chat
