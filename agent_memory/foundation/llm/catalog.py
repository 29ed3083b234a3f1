"""Context windows and embedding dimensions by model name. Settings override them; unknown models are allowed."""

from __future__ import annotations

import logging
from functools import lru_cache

from agent_memory.foundation.core.settings import ModelSettings
from agent_memory.foundation.llm.model_context import ModelContext

logger = logging.getLogger(__name__)

CONTEXT_WINDOWS: dict[str, int] = {
    "gpt-4.1": 128000,
    "gpt-4.1-mini": 128000,
    "gpt-3.5-turbo": 4096,
    "gpt-3.5-turbo-16k": 16384,
    "gpt-4": 8192,
    "gpt-4-32k": 32768,
    "gpt-4o": 128000,
    "gpt-4o-mini": 128000,
    "gpt-5": 128000,
    "o1": 200000,
    "o1-mini": 128000,
    "o3-mini": 200000,
    "gpt-5-mini": 400000,
    "gpt-5-nano": 400000,
    "gpt-5.1-chat-latest": 128000,
    "gpt-5.2-chat-latest": 128000,
    "text-embedding-ada-002": 8191,
    "text-embedding-3-small": 8191,
    "text-embedding-3-large": 8191,
    "claude-3-opus-20240229": 200000,
    "claude-3-sonnet-20240229": 200000,
    "claude-3-haiku-20240307": 200000,
    "claude-3-5-sonnet-20240620": 200000,
    "claude-sonnet-4-5-20250929": 200000,
    "claude-haiku-4-5-20251001": 200000,
    "claude-opus-4-5-20251101": 200000,
    "claude-3-7-sonnet-20250219": 200000,
    "claude-3-5-sonnet-20241022": 200000,
    "claude-3-5-haiku-20241022": 200000,
    "claude-3-7-sonnet-latest": 200000,
    "claude-3-5-sonnet-latest": 200000,
    "claude-3-5-haiku-latest": 200000,
    "claude-3-opus-latest": 200000,
    "claude-sonnet-4-5": 200000,
    "claude-haiku-4-5": 200000,
    "claude-opus-4-5": 200000,
    "bedrock/amazon.titan-embed-text-v2:0": 8192,
    "bedrock/amazon.titan-embed-text-v1": 8192,
    "bedrock/cohere.embed-english-v3": 8192,
    "bedrock/cohere.embed-multilingual-v3": 8192,
    "amazon.titan-embed-text-v2:0": 8192,
    "amazon.titan-embed-text-v1": 8192,
    "cohere.embed-english-v3": 8192,
    "cohere.embed-multilingual-v3": 8192,
    "anthropic.claude-sonnet-4-5-20250929-v1:0": 200000,
    "anthropic.claude-haiku-4-5-20251001-v1:0": 200000,
    "anthropic.claude-opus-4-5-20251101-v1:0": 200000,
}

# Prefixes of names outside the table; cautious, since too small a window only summarizes earlier.
FAMILIES: dict[str, int] = {
    "gpt-5": 400000,
    "gpt-4.1": 128000,
    "gpt-4o": 128000,
    "gpt-4-turbo": 128000,
    "gpt-4": 8192,
    "gpt-3.5": 16384,
    "gpt-oss": 128000,
    "chatgpt": 128000,
    "o1": 200000,
    "o3": 200000,
    "o4": 200000,
    "claude": 200000,
    "gemini": 1000000,
    "gemma-3": 128000,
    "gemma3": 128000,
    "gemma": 8192,
    "llama-3.1": 128000,
    "llama-3.2": 128000,
    "llama-3.3": 128000,
    "llama-4": 128000,
    "llama3.1": 128000,
    "llama3.2": 128000,
    "llama3.3": 128000,
    "llama4": 128000,
    "llama": 8192,
    "mistral": 32000,
    "ministral": 32000,
    "mixtral": 32000,
    "codestral": 32000,
    "qwen": 32000,
    "deepseek": 64000,
    "phi-3": 4096,
    "phi": 16000,
    "grok": 128000,
    "command-r": 128000,
    "nova": 128000,
    "text-embedding-3": 8191,
}

EMBEDDING_DIMENSIONS: dict[str, int] = {
    "text-embedding-ada-002": 1536,
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "amazon.titan-embed-text-v2:0": 1024,
    "amazon.titan-embed-text-v1": 1536,
    "cohere.embed-english-v3": 1024,
    "cohere.embed-multilingual-v3": 1024,
    "nomic-embed-text": 768,
    "mxbai-embed-large": 1024,
    "all-minilm": 384,
    "all-minilm-l6-v2": 384,
    "all-mpnet-base-v2": 768,
    "bge-m3": 1024,
    "bge-small-en-v1.5": 384,
    "bge-base-en-v1.5": 768,
    "bge-large-en-v1.5": 1024,
    "gemini-embedding-001": 3072,
}


def context_window(model: str | None, settings: ModelSettings) -> int:
    """Return the tokens of a model's window: from settings, table, family, or the default (logged once per model)."""
    if model is None:
        return settings.default_context_window
    if model in settings.context_windows:
        return settings.context_windows[model]
    window = _known_window(model)
    if window is None:
        _log_unknown(model, settings.default_context_window)
        return settings.default_context_window
    return window


def model_context(where: str, model: str, settings: ModelSettings) -> ModelContext:
    """Return the context of `model` at the server `where`, as far as known."""
    configured = settings.context_windows.get(model)
    return ModelContext(where, model, configured=configured, assumed=context_window(model, settings))


def embedding_dimensions(model: str) -> int | None:
    """Return the length of the model's vectors, None if unknown."""
    name = _base(model)
    return EMBEDDING_DIMENSIONS.get(name) or EMBEDDING_DIMENSIONS.get(name.removesuffix(":latest"))


@lru_cache(maxsize=1024)
def _known_window(model: str) -> int | None:
    name = _base(model)
    if name in CONTEXT_WINDOWS:
        return CONTEXT_WINDOWS[name]
    # a dated or tagged variant of a model in the table, e.g. gpt-4o-2024-11-20
    variants = [entry for entry in CONTEXT_WINDOWS if name.startswith((f"{entry}-2", f"{entry}:", f"{entry}@"))]
    if variants:
        return CONTEXT_WINDOWS[max(variants, key=len)]
    families = [family for family in FAMILIES if name.startswith(family)]
    return FAMILIES[max(families, key=len)] if families else None


def _base(model: str) -> str:
    """Return the lower-case name without its provider (`openai/`, `bedrock/us.anthropic.`); of a fine-tuned model, its
    origin.
    """
    name = model.strip().lower().removeprefix("ft:").rsplit("/", 1)[-1]
    start = name.find("claude-")
    if start > 0 and name[start - 1] == "." and name.removeprefix("us.").removeprefix("eu.") not in CONTEXT_WINDOWS:
        return name[start:]
    return name


@lru_cache(maxsize=256)
def _log_unknown(model: str, default: int) -> None:
    """The cache makes it log once per model."""
    logger.info("the context window of model %r is not known; using %d tokens (MODEL_CONTEXT_WINDOWS sets it)", model, default)
