"""Test how a model's context limit is determined from errors and server reports."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_memory.foundation.llm.context_refusals import ContextOverflow, overflow
from agent_memory.foundation.llm.model_context import LEARNED_SECONDS, ModelContext, fingerprint
from agent_memory.foundation.llm.openai.served_context import ServedContext, ask, tells
from tests.support.lookalike.limits import NAME_NO_LIMIT, REFUSALS

# The request size in these errors includes the answer, or is missing.
_NAME_NO_SIZE = NAME_NO_LIMIT | {"dashscope", "cohere", "github models"}


def _text(body: Any) -> str:
    return body if isinstance(body, str) else json.dumps(body)


@pytest.mark.parametrize("wording", REFUSALS)
def test_every_context_refusal_is_recognized(wording: str) -> None:
    status, body = REFUSALS[wording](4096, 7332, 500)
    told = overflow(status, _text(body))
    assert told is not None
    assert told.limit == (None if wording in NAME_NO_LIMIT else 4096)
    assert told.sent == (None if wording in _NAME_NO_SIZE else 7332)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."),
        (400, "max_tokens is too large: 20000. This model supports at most 16384 completion tokens, whereas you provided 20000."),
        (400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
        (400, "Invalid schema for response_format 'Answer': schema exceeds the maximum nesting depth of 5"),
        (404, "The model `m` does not exist"),
        (422, "messages: extra fields not permitted"),
        (429, "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s."),
        (429, "Too many tokens, please wait before trying again."),
        (429, "You exceeded your current quota, please check your plan and billing details."),
        (500, "The server had an error while processing your request. Sorry about that!"),
        (503, "Overloaded"),
    ],
)
def test_other_refusals_are_not_taken_for_a_context_refusal(status: int, text: str) -> None:
    assert overflow(status, text) is None


def test_refusal_of_a_megabyte_is_parsed_without_delay() -> None:
    for text in ("context size " * 80_000, "exceeds the the the the " * 40_000, "9" * 1_000_000, "n_ctx" + " " * 1_000_000 + "5"):
        overflow(400, text)
    assert overflow(400, "exceeds the context window of " + "9" * 5000) is not None


def _context(**more: Any) -> tuple[ModelContext, list[float]]:
    now = [1000.0]
    return ModelContext("http://m/v1", "m", assumed=16_000, clock=lambda: now[0], **more), now


def test_refusal_overrides_the_configured_limit_which_overrides_the_servers() -> None:
    context, now = _context(configured=8000)
    context.note_limit(32_000)
    assert (context.limit.tokens, context.limit.source) == (8000, "set")
    context.learn_refusal(ContextOverflow(4096, 7332), 7000)
    assert (context.limit.tokens, context.limit.source) == (4096, "learned")
    now[0] += LEARNED_SECONDS + 1
    assert (context.limit.tokens, context.limit.source) == (8000, "set"), "the server may have been started anew"
    context, _ = _context()
    assert (context.limit.tokens, context.limit.source, context.limit.certain) == (16_000, "assumed", False)
    context.note_limit(32_000)
    assert (context.limit.tokens, context.limit.source) == (32_000, "told")


def test_window_shrinks_if_the_server_counts_more_tokens() -> None:
    context, _ = _context()
    context.learn_refusal(ContextOverflow(4096, 8000), 4000)
    assert context.window == 2048
    for _ in range(50):
        context.learn_acceptance(1000, 1000)
    assert context.window > 4000, "a batch of another language"


def test_refusal_without_a_limit_halves_the_window_down_to_accepted_sizes() -> None:
    context, _ = _context()
    context.learn_acceptance(3000, 3000)
    context.learn_refusal(ContextOverflow(), 8000)
    assert context.limit.tokens == 4000
    context.learn_refusal(ContextOverflow(), 3800)
    assert context.limit.tokens == 3000


def test_refusal_shrinks_the_window_even_if_our_count_fits() -> None:
    context, _ = _context()
    context.learn_refusal(ContextOverflow(4096), 3900)
    assert context.window < 3900


def test_refused_request_is_remembered_until_the_limit_expires() -> None:
    context, now = _context()
    request = fingerprint("a", "bc")
    assert request != fingerprint("ab", "c")
    context.remember_refused(request)
    assert context.refuses(request)
    now[0] += LEARNED_SECONDS + 1
    assert not context.refuses(request)


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ({"/v1/models": {"data": [{"id": "m", "meta": {"n_ctx": 4096, "n_ctx_train": 131072}}]}}, ServedContext(4096)),
        ({"/v1/models": {"data": [{"id": "m", "meta": {"n_ctx_train": 131072}}]}}, None),
        ({"/v1/models": {"data": [{"id": "x", "max_model_len": 1000}, {"id": "m", "max_model_len": 8192}]}}, ServedContext(8192)),
        ({"/v1/models": {"data": [{"id": "x", "max_model_len": 1000}, {"id": "y", "max_model_len": 8192}]}}, None),
        ({"/v1/models": {"data": [{"id": "only", "context_length": 32768}]}}, ServedContext(32768)),
        ({"/props": {"default_generation_settings": {"n_ctx": 2048}}}, ServedContext(2048)),
        ({"/api/v0/models": {"data": [{"id": "m", "max_context_length": 131072, "loaded_context_length": 4096}]}}, ServedContext(4096)),
        ({"/api/v0/models": {"data": [{"id": "m", "max_context_length": 131072}]}}, None),
        ({"/api/ps": {"models": [{"name": "m:latest", "context_length": 8192}]}}, ServedContext(8192)),
        ({"/api/ps": {"models": [{"name": "other:latest", "context_length": 8192}]}}, ServedContext(4096, guess=True)),
        ({"/info": {"max_total_tokens": 2048, "max_input_tokens": 1024}}, ServedContext(2048)),
        ({}, None),
        ({"/v1/models": ["odd", None, 3], "/props": [], "/api/ps": {"models": "none"}, "/info": {"max_total_tokens": True}}, None),
    ],
)
async def test_context_reported_by_servers_is_parsed(answers: dict[str, Any], found: ServedContext | None) -> None:
    async def look(url: str) -> Any:
        assert url.startswith("http://host:1/")
        return answers.get(url.removeprefix("http://host:1"))

    assert await ask(look, "http://host:1/v1", "m") == found


def test_only_servers_that_report_a_limit_are_asked() -> None:
    assert not tells("https://api.openai.com/v1")
    assert tells("http://127.0.0.1:8080/v1")
