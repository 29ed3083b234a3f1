"""Simulate how servers reject prompts that exceed their context limit, and report that limit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_TOKEN = re.compile(r"\w{1,5}|[^\w\s]")

Refusal = tuple[int, Any]


def tokens_of(text: str) -> int:
    """Count tokens like the look-alike, in pieces of up to five letters."""
    return len(_TOKEN.findall(text))


def _error(message: str, status: int = 400, **more: Any) -> Refusal:
    return status, {"error": {"message": message, "type": "invalid_request_error", "code": None, **more}}


def _vllm(limit: int, sent: int, bound: int) -> Refusal:
    message = (
        f"This model's maximum context length is {limit} tokens. However, you requested {sent + bound} tokens "
        f"({sent} in the messages, {bound} in the completion). Please reduce the length of the messages or completion."
    )
    return 400, {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400}


REFUSALS: dict[str, Callable[[int, int, int], Refusal]] = {
    "llama.cpp": lambda limit, sent, _: _error(
        f"request ({sent} tokens) exceeds the available context size ({limit} tokens), try increasing it",
        code=400,
        type="exceed_context_size_error",
        n_prompt_tokens=sent,
        n_ctx=limit,
    ),
    "llama.cpp of old": lambda limit, sent, _: _error(
        "the request exceeds the available context size. try increasing the context size or enable context shift", 500
    ),
    "llama-cpp-python": lambda limit, sent, _: _error(f"Requested tokens ({sent}) exceed context window of {limit}", 500),
    "ollama": lambda limit, sent, _: _error(json.dumps(REFUSALS["llama.cpp"](limit, sent, 0)[1])),
    "lm studio": lambda limit, sent, _: (
        400,
        {
            "error": f"Trying to keep the first {sent} tokens when context the overflows. However, the model is loaded with context "
            f"length of only {limit} tokens, which is not enough. Try to load the model with a larger context length, or provide a "
            "shorter input. Error Data: n/a, Additional Data: n/a"
        },
    ),
    "lm studio, n_keep": lambda limit, sent, _: (
        400,
        {
            "error": "The number of tokens to keep from the initial prompt is greater than the context length "
            f"(n_keep: {sent} >= n_ctx: {limit}). Try to load the model with a larger context length, or provide a shorter prompt."
        },
    ),
    "vllm": _vllm,
    "vllm, new": lambda limit, sent, _: (
        400,
        {
            "error": {
                "message": f"This model's maximum context length is {limit} tokens. However, your request has {sent} input tokens. "
                "Please reduce the length of the input messages.",
                "type": "BadRequestError",
                "param": "input_tokens",
                "code": 400,
            }
        },
    ),
    "sglang": lambda limit, sent, _: (
        400,
        {
            "object": "error",
            "message": f"The input ({sent} tokens) is longer than the model's context length ({limit} tokens).",
            "type": "BadRequestError",
            "code": 400,
        },
    ),
    "tgi": lambda limit, sent, bound: (
        422,
        {
            "error": f"Input validation error: `inputs` tokens + `max_new_tokens` must be <= {limit}. "
            f"Given: {sent} `inputs` tokens and {bound} `max_new_tokens`",
            "error_type": "validation",
        },
    ),
    "openai": lambda limit, sent, _: _error(
        f"This model's maximum context length is {limit} tokens. However, your messages resulted in {sent} tokens. "
        "Please reduce the length of the messages.",
        code="context_length_exceeded",
    ),
    "openai, of late": lambda limit, sent, _: _error(
        "Your input exceeds the context window of this model. Please adjust your input and try again.", code="context_length_exceeded"
    ),
    "openai, configured": lambda limit, sent, _: _error(
        f"Input tokens exceed the configured limit of {limit} tokens. Your messages resulted in {sent} tokens. "
        "Please reduce the length of the messages.",
        code="context_length_exceeded",
    ),
    "openai, a minute's rate": lambda limit, sent, _: _error(
        f"Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit {limit}, Requested {sent}. "
        "The input or output tokens must be reduced in order to run successfully.",
        429,
        code="rate_limit_exceeded",
        type="tokens",
    ),
    "groq": lambda limit, sent, _: _error(
        "Please reduce the length of the messages or completion.", code="context_length_exceeded", param="messages"
    ),
    "anthropic": lambda limit, sent, _: _error(f"prompt is too long: {sent} tokens > {limit} maximum"),
    "bedrock": lambda limit, sent, _: _error("Input is too long for requested model."),
    "mistral": lambda limit, sent, _: (
        400,
        {
            "object": "error",
            "message": f"Prompt contains {sent} tokens and 0 draft tokens, too large for model with {limit} maximum context length",
            "type": "invalid_request_message_error",
            "code": 3051,
        },
    ),
    "gemini": lambda limit, sent, _: _error(
        f"The input token count ({sent}) exceeds the maximum number of tokens allowed ({limit}).", code=400
    ),
    "xai": lambda limit, sent, _: (
        400,
        {
            "code": "Client specified an invalid argument",
            "error": f"This model's maximum prompt length is {limit} but the request contains {sent} tokens.",
        },
    ),
    "kimi": lambda limit, sent, _: _error(f"Invalid request: Your request exceeded model token limit: {limit} (requested: {sent})"),
    "minimax": lambda limit, sent, _: _error("invalid params, context window exceeds limit (2013)"),
    "dashscope": lambda limit, sent, _: _error(f"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, {limit}]"),
    "copilot": lambda limit, sent, _: _error(f"prompt token count of {sent} exceeds the limit of {limit}"),
    "cohere": lambda limit, sent, _: _error(
        f"too many tokens: size limit exceeded by {sent - limit} tokens. Try using shorter or fewer inputs. "
        f"The limit for this model is {limit} tokens."
    ),
    "github models": lambda limit, sent, _: _error(f"Request body too large for gpt-4o model. Max size: {limit} tokens.", 413),
    "a proxy": lambda limit, sent, _: (413, "<html><head><title>413 Request Entity Too Large</title></head></html>"),
}
# These servers refuse a prompt that fits if the requested answer does not fit; the others cut the answer off.
COUNT_THE_ANSWER = frozenset({"vllm", "tgi"})
# These errors name no limit, or a number that could mean anything.
NAME_NO_LIMIT = frozenset({"llama.cpp of old", "openai, of late", "groq", "bedrock", "minimax", "a proxy"})


@dataclass
class Context:
    """The look-alike's context limit in tokens (None: unlimited), and how it reports the limit."""

    tokens: int | None = None
    wording: str = "llama.cpp"
    tells: str | None = None
    refused: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The refused requests, as received."""
    asked: list[str] = field(default_factory=list[str])
    """The paths at which clients asked for the limit."""

    def told(self, path: str) -> Any:
        """Return the report for a path in the format from `tells`, or None if there is none."""
        self.asked.append(path)
        limit = self.tokens
        plain: dict[str, Any] = {"id": "any-name", "object": "model", "created": 1, "owned_by": "tests"}
        listed: dict[str, Callable[[], dict[str, Any]]] = {
            "llama.cpp": lambda: {**plain, "meta": {"n_ctx": limit, "n_ctx_train": 131072}},
            "llama.cpp of old": lambda: {**plain, "meta": {"n_ctx_train": 131072}},
            "vllm": lambda: {**plain, "max_model_len": limit},
            "openrouter": lambda: {**plain, "context_length": limit},
            "groq": lambda: {**plain, "context_window": limit},
        }
        answers: dict[tuple[str | None, str], Any] = {
            ("llama.cpp of old", "/props"): {"default_generation_settings": {"n_ctx": limit}, "total_slots": 2},
            ("lm studio", "/api/v0/models"): {
                "data": [{"id": "any-name", "loaded_context_length": limit, "max_context_length": 131072, "state": "loaded"}]
            },
            ("ollama", "/api/ps"): {"models": [{"name": "any-name:latest", "model": "any-name:latest", "context_length": limit}]},
            ("ollama, not loaded", "/api/ps"): {"models": []},
            ("tgi", "/info"): {"model_id": "any-name", "max_input_tokens": 1024, "max_total_tokens": limit},
        }
        if path == "/v1/models":
            return {"object": "list", "data": [listed.get(self.tells or "", lambda: plain)()]}
        return answers.get((self.tells, path))

    def refusal(self, body: dict[str, Any]) -> Refusal | None:
        """Return the error for a request that does not fit, or None if it fits."""
        bound = int(body.get("max_tokens") or body.get("max_completion_tokens") or 0)
        sent = self.sent(body)
        counted = sent + (bound if self.wording in COUNT_THE_ANSWER else 0)
        if self.tokens is None or counted <= self.tokens:
            return None
        self.refused.append(body)
        return REFUSALS[self.wording](self.tokens, sent, bound)

    @staticmethod
    def sent(body: dict[str, Any]) -> int:
        """Return the number of tokens in a request."""
        return sum(tokens_of(str(message.get("content"))) + 4 for message in body.get("messages", []))

    def cut(self, body: dict[str, Any], answer: str) -> tuple[str, bool]:
        """Return the part of the answer that fits, and whether it was truncated."""
        room = None if self.tokens is None else self.tokens - self.sent(body)
        if room is None or tokens_of(answer) <= room:
            return answer, False
        ends = [found.end() for found in _TOKEN.finditer(answer)]
        return answer[: ends[room - 1]] if room else "", True
