"""Test chat over real HTTP, including response format fallbacks and server faults."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from agent_memory.features.extraction.prompts import ExtractionAnswer, extract_messages
from agent_memory.features.sessions.prompts import SummaryAnswer, summarize_messages
from agent_memory.foundation.core.errors import ModelAnswerInvalid, ModelUnavailable, StartupError
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.base import ChatMessage, ChatModel
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory.foundation.text.data_fences import PromptMessage
from tests.support.lookalike import Lookalike
from tests.support.lookalike.server import _error  # pyright: ignore[reportPrivateUsage]

MESSAGES = [PromptMessage(1, "user", "My dog Rex loves the river near Bonn.", datetime(2024, 3, 5, 12, tzinfo=UTC))]
FACTS = extract_messages(MESSAGES)
At = Callable[..., Settings]


def kinds(lookalike: Lookalike) -> list[str | None]:
    """Return the response formats that the client requested."""
    return [(body.get("response_format") or {}).get("type") for body in lookalike.bodies("chat")]


async def test_chat_returns_text_and_structured_answers(lookalike: Lookalike, at: At) -> None:
    chat = await OpenAIChat.open(at(GENERATION_MODEL="my-litellm-model"))
    assert isinstance(chat, ChatModel)
    assert (chat.model, chat.context.window) == ("my-litellm-model", 16000)
    assert await chat.text([ChatMessage("user", "hello there \ud800")]) != ""
    answer = await chat.structured(FACTS, ExtractionAnswer)
    assert "Rex" in answer.memories[0].text
    assert answer.memories[0].messages == [1]
    summary = await chat.structured(summarize_messages(None, MESSAGES, max_words=100), SummaryAnswer)
    assert "Rex" in summary.summary
    assert kinds(lookalike) == [None, "json_schema", "json_schema"]
    schema = lookalike.bodies("chat")[1]["response_format"]["json_schema"]
    assert schema["strict"] is True
    assert schema["schema"]["additionalProperties"] is False
    await chat.close()


async def test_unsupported_response_format_falls_back_once_and_is_remembered(lookalike: Lookalike, at: At) -> None:
    lookalike.set_fault("reject_json_schema")
    chat = await OpenAIChat.open(at())
    for _ in range(2):
        assert (await chat.structured(FACTS, ExtractionAnswer)).memories
    assert kinds(lookalike) == ["json_schema", "json_object", "json_object"]
    assert "JSON schema" in lookalike.bodies("chat")[-1]["messages"][-1]["content"]
    lookalike.forget()
    lookalike.set_fault("reject_response_format")
    for _ in range(2):
        assert (await chat.structured(FACTS, ExtractionAnswer)).memories
    assert kinds(lookalike) == ["json_object", None, None]
    await chat.close()


async def test_server_that_ignores_the_schema_gets_it_in_the_prompt(lookalike: Lookalike, at: At) -> None:
    chat = await OpenAIChat.open(at())
    lookalike.set_fault("garbage", times=1)
    assert (await chat.structured(FACTS, ExtractionAnswer)).memories
    assert (await chat.structured(FACTS, ExtractionAnswer)).memories
    assert kinds(lookalike) == ["json_schema", "json_schema", "json_object"]
    repair = lookalike.bodies("chat")[1]["messages"]
    assert [message["role"] for message in repair[-2:]] == ["assistant", "user"]
    assert "cannot be used" in repair[-1]["content"]
    await chat.close()


@pytest.mark.parametrize("fault", ["fenced", "prose_around", "thinking", "parts"])
async def test_wrapped_answer_is_parsed_without_a_repair(lookalike: Lookalike, at: At, fault: str) -> None:
    chat = await OpenAIChat.open(at())
    lookalike.set_fault(fault)
    assert "Rex" in (await chat.structured(FACTS, ExtractionAnswer)).memories[0].text
    assert lookalike.calls["chat"] == 1
    await chat.close()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("garbage", "unusable"), ("truncated", "unusable"), ("wrong_types", "unusable"), ("no_content", "unusable"), ("length", "length")],
)
async def test_unusable_answer_is_repaired_once_and_then_raises(lookalike: Lookalike, at: At, fault: str, reason: str) -> None:
    chat = await OpenAIChat.open(at())
    lookalike.set_fault(fault, times=1)
    assert (await chat.structured(FACTS, ExtractionAnswer, max_tokens=500)).memories
    lookalike.forget()
    lookalike.set_fault(fault)
    with pytest.raises(ModelAnswerInvalid) as caught:
        await chat.structured(FACTS, ExtractionAnswer, max_tokens=500)
    assert caught.value.data["reason"] == reason
    assert lookalike.calls["chat"] == 2
    await chat.close()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("refusal", "refusal"),
        ("empty_choices", "unreadable"),
        ("html", "unreadable"),
        ("null", "unreadable"),
        ("garbage_body", "unreadable"),
        ("400", "refused"),
    ],
)
async def test_unrepairable_answers_raise_with_their_reason(lookalike: Lookalike, at: At, fault: str, reason: str) -> None:
    chat = await OpenAIChat.open(at())
    lookalike.set_fault(fault)
    for call in (chat.structured(FACTS, ExtractionAnswer), chat.text([ChatMessage("user", "hello")])):
        with pytest.raises(ModelAnswerInvalid) as caught:
            await call
        assert caught.value.data["reason"] == reason
    await chat.close()


@pytest.mark.parametrize(("fault", "reason"), [("no_content", "empty"), ("length", "length")])
async def test_empty_or_cut_text_answer_raises(lookalike: Lookalike, at: At, fault: str, reason: str) -> None:
    chat = await OpenAIChat.open(at())
    lookalike.set_fault(fault)
    with pytest.raises(ModelAnswerInvalid) as caught:
        await chat.text([ChatMessage("user", "hello")])
    assert caught.value.data["reason"] == reason
    await chat.close()


@pytest.mark.parametrize(
    ("fault", "reason", "calls"),
    [("500", "server_error", 2), ("503", "server_error", 2), ("429", "rate_limit", 1), ("401", "auth", 1), ("403", "auth", 1)],
)
async def test_failing_server_is_unavailable_with_a_reason(lookalike: Lookalike, at: At, fault: str, reason: str, calls: int) -> None:
    chat = await OpenAIChat.open(at())
    lookalike.set_fault(fault)
    with pytest.raises(ModelUnavailable) as caught:
        await chat.text([ChatMessage("user", "hello")])
    assert caught.value.data["reason"] == reason
    assert lookalike.calls["chat"] == calls
    assert "sk-" not in str(caught.value)
    if fault == "429":
        assert caught.value.retry_after == 7
    await chat.close()


async def test_missing_model_is_unavailable(lookalike: Lookalike, at: At) -> None:
    chat = await OpenAIChat.open(at())
    lookalike.set_fault("404")
    with pytest.raises(ModelUnavailable) as caught:
        await chat.text([ChatMessage("user", "hello")])
    assert caught.value.data["reason"] == "not_found"
    await chat.close()


async def test_background_call_is_retried_once_but_a_request_is_not(lookalike: Lookalike, at: At) -> None:
    chat = await OpenAIChat.open(at())
    lookalike.set_fault("500", times=1)
    assert await chat.text([ChatMessage("user", "hello")])
    lookalike.set_fault("500", times=1)
    with pytest.raises(ModelUnavailable):  # no time for a second try within a request
        await chat.text([ChatMessage("user", "hello")], timeout=5)
    await chat.close()


@pytest.mark.parametrize("fault", ["timeout", "drip"])
async def test_timeout_covers_the_whole_answer(lookalike: Lookalike, at: At, fault: str) -> None:
    chat = await OpenAIChat.open(at())
    lookalike.set_fault(fault)
    with pytest.raises(ModelUnavailable) as caught:
        async with asyncio.timeout(15):
            await chat.text([ChatMessage("user", "hello")], timeout=0.4)
    assert caught.value.data["reason"] == "timeout"
    with pytest.raises(ModelUnavailable):
        async with asyncio.timeout(15):
            await chat.structured(FACTS, ExtractionAnswer, timeout=0.4)
    await chat.close()


async def test_chat_recovers_after_the_server_comes_back(lookalike: Lookalike, at: At) -> None:
    chat = await OpenAIChat.open(at())
    assert await chat.text([ChatMessage("user", "hello")])
    lookalike.set_fault("down")
    for _ in range(4):
        with pytest.raises(ModelUnavailable) as caught:
            await chat.text([ChatMessage("user", "hello")])
    assert caught.value.data["reason"] == "breaker_open"
    lookalike.restart()

    async def works() -> bool:
        try:
            return bool(await chat.text([ChatMessage("user", "hello")]))
        except ModelUnavailable as error:
            await asyncio.sleep(min(error.retry_after, 0.1))
            return False

    async with asyncio.timeout(20):
        while not await works():
            pass
    await chat.close()


@pytest.mark.parametrize(
    ("rejected", "sent"),
    [
        ([], ["max_tokens", "max_tokens"]),
        (["reject_max_tokens"], ["max_tokens", "max_completion_tokens", "max_completion_tokens"]),
        (["reject_max_tokens", "reject_max_completion_tokens"], ["max_tokens", "max_completion_tokens", None, None]),
    ],
)
async def test_token_limit_uses_the_parameter_that_the_server_accepts(
    lookalike: Lookalike, at: At, rejected: list[str], sent: list[str | None]
) -> None:
    chat = await OpenAIChat.open(at(GENERATION_MODEL="some-model"))
    for kind in rejected:
        lookalike.set_fault(kind)
    for _ in range(2):
        await chat.text([ChatMessage("user", "hello")], max_tokens=50)
    names = [next((name for name in ("max_tokens", "max_completion_tokens") if name in body), None) for body in lookalike.bodies("chat")]
    assert names == sent
    await chat.close()


async def test_reasoning_models_get_extra_completion_tokens(lookalike: Lookalike, at: At) -> None:
    chat = await OpenAIChat.open(at(GENERATION_MODEL="gpt-5-mini"))
    await chat.text([ChatMessage("user", "hello")], max_tokens=50)
    assert lookalike.bodies("chat")[0]["max_completion_tokens"] > 4000
    await chat.close()


async def test_plain_text_answer_is_accepted_as_a_summary(lookalike: Lookalike, at: At) -> None:
    lookalike.set_fault("ignore_response_format")
    chat = await OpenAIChat.open(at())
    prompt = [ChatMessage("user", "Please summarize: we met Rex the dog at the river.")]
    assert "Rex" in (await chat.structured(prompt, SummaryAnswer)).summary
    assert lookalike.calls["chat"] == 1
    await chat.close()


async def test_missing_key_gets_a_placeholder_and_invalid_keys_or_addresses_are_refused(lookalike: Lookalike, at: At) -> None:
    keyless = await OpenAIChat.open(at(OPENAI_API_KEY=""))
    await keyless.text([ChatMessage("user", "hello")])
    assert lookalike.requests[-1].headers["authorization"] == "Bearer not-needed"
    await keyless.close()
    with pytest.raises(StartupError, match="not an http address"):
        await OpenAIChat.open(at(OPENAI_BASE_URL="localhost:8080/v1"))
    with pytest.raises(StartupError, match="cannot be sent"):
        await OpenAIChat.open(at(OPENAI_API_KEY="schlüssel"))


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("x", "request (7332 tokens) exceeds the context of key-value stores"),
        ("context", "request (7332 tokens) exceeds the context of key-value stores"),
        ("7332 tokens", "request (***) exceeds the context of key-value stores"),
    ],
)
async def test_server_error_masks_the_key_but_no_ordinary_words(
    lookalike: Lookalike, at: At, monkeypatch: pytest.MonkeyPatch, key: str, shown: str
) -> None:
    monkeypatch.setattr("tests.support.lookalike.server._chat_refusal", lambda *_: _error(400, shown.replace("***", key)))
    chat = await OpenAIChat.open(at(OPENAI_API_KEY=key))
    with pytest.raises(ModelAnswerInvalid) as refused:
        await chat.text([ChatMessage("user", "hello")])
    await chat.close()
    assert shown in str(refused.value)


async def test_slow_answer_is_awaited_while_tokens_arrive(lookalike: Lookalike, at: At) -> None:
    lookalike.token_seconds = 0.2
    chat = await OpenAIChat.open(at(MODEL_TIMEOUT_SECONDS=2))
    began = time.monotonic()
    assert (await chat.structured(FACTS, ExtractionAnswer)).memories
    assert time.monotonic() - began > 2
    await chat.close()


@pytest.mark.parametrize(
    ("fault", "calls"), [("reject_stream", 3), ("reject_stream_options", 2), ("ignore_stream", 1)], ids=["no stream", "no usage", "ignored"]
)
async def test_unsupported_streaming_falls_back_once_and_is_remembered(lookalike: Lookalike, at: At, fault: str, calls: int) -> None:
    lookalike.set_fault(fault)
    chat = await OpenAIChat.open(at())
    for times in (calls, calls + 1):
        assert (await chat.structured(FACTS, ExtractionAnswer)).memories
        assert lookalike.calls["chat"] == times
    await chat.close()
