"""Recognize refusals of requests larger than a model's context, and read their numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

_READ = 4000  # characters of a refusal that are looked at


@dataclass(frozen=True, slots=True)
class ContextOverflow:
    """The server's limit and the request's tokens by its count, as far as the refusal names them."""

    limit: int | None = None
    sent: int | None = None


# Each is a wording of the servers named behind it.
_SAYS = re.compile(
    "|".join(
        (
            r"context[_ ]length[_ ]exceeded|context[_ ]?window[_ ]?exceeded",  # OpenAI's code, LiteLLM
            r"exceed_context_size",  # llama.cpp's type
            r"exceeds? (?:the |this |model |model's |its |available |maximum |configured ){0,4}context",  # llama.cpp, OpenAI, GPT4All
            r"exceed (?:the )?(?:context limit|configured limit)",  # Anthropic, OpenAI
            r"maximum context length|maximum prompt length|maximum number of tokens allowed",  # OpenAI, vLLM, Mistral, xAI, Gemini
            r"(?:greater|longer) than the (?:model's )?context length|loaded with (?:a )?context length",  # LM Studio, SGLang
            r"context window exceeds limit|exceeded model token limit|exceeds the limit of \d",  # MiniMax, Kimi, Copilot
            r"reduce the length of the (?:input )?(?:messages|prompt)|prompt exceeds max length",  # Groq, vLLM, Zhipu
            r"(?:prompt|input) is too long|input length should be \[",  # Anthropic, Bedrock, DashScope
            r"`inputs` (?:tokens \+ `max_new_tokens` must be <=|must have less than)",  # TGI, Together
            r"request (?:body )?too large for",  # Groq, OpenAI, GitHub Models
            r"too many tokens: size limit exceeded",  # Cohere
            r"too large to process. increase the physical batch size",  # llama.cpp, of embeddings
        )
    ),
    re.IGNORECASE,
)
# A used-up rate is no overflow, unless one request alone exceeds it.
_ALONE_TOO_LARGE = re.compile(r"request too large for", re.IGNORECASE)
_LIMITS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\bn_ctx\W{1,6}(\d+)",
        r"context (?:size|window|length)(?! exceeds limit \()\D{0,40}?(\d+)",
        r"maximum prompt length is (\d+)",
        r"too large for model with (\d+)",
        r"must be <= (\d+)",
        r"must have less than (\d+) tokens",
        r"tokens allowed \(?(\d+)",
        r"limit (?:of|for this model is) (\d+)",
        r"token limit:? (\d+)",
        r"tokens per min\w*[^:]{0,20}: limit (\d+)",
        r"max size: (\d+) tokens",
        r"length should be \[\d+, ?(\d+)\]",
        r"current batch size: (\d+)",
        r" > (\d+)\b",
    )
)
_SENT = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\bn_(?:prompt_tokens|keep)\W{1,6}(\d+)",
        r"\((\d+) (?:tokens )?in (?:the messages|your prompt)",
        r"(?<!\d)(\d{1,12}) tokens from the input messages",
        r"has (\d+) input tokens",
        r"(?:request|input|tokens) \((\d+)(?: tokens)?\)",
        r"requested:? (?:about |a total of )?(\d+)",
        r"resulted in (\d+)",
        r"too long: (\d+) tokens",
        r"given: (\d+)",
        r"contains (\d+) tokens",
        r"token count (?:of )?\(?(\d+)",
        r"first (\d+) tokens",
    )
)


def overflow(status: int, text: str) -> ContextOverflow | None:
    """Return the numbers in a refusal about the context, None for another refusal."""
    text = text[:_READ]
    wordings = _ALONE_TOO_LARGE if status == 429 else _SAYS
    if wordings.search(text) is None:
        return ContextOverflow() if status == 413 else None
    limit, sent = _first(_LIMITS, text), _first(_SENT, text)
    return ContextOverflow(limit, sent)


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
    for pattern in patterns:
        match = pattern.search(text)
        if match is not None and (value := int(match[1][:12])) > 0:
            return value
    return None
