"""Query known types of model servers for their context size."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from agent_memory.foundation.llm.token_usage import number

Look = Callable[[str], Awaitable[Any]]
"""A function that returns the JSON at an address, or None."""

# Fields of a listed model, best first. Ignore the training size `n_ctx_train`, because servers rarely offer all of it.
_FIELDS = ("max_model_len", "context_length", "context_window", "loaded_context_length", "max_context_length", "context_size")
# Ollama's default on most machines until the model is loaded.
_OLLAMA_DEFAULT = 4096
# Hosts whose model lists contain only names.
_SILENT_HOSTS = frozenset({"api.openai.com"})


@dataclass(frozen=True, slots=True)
class ServedContext:
    """The context size in tokens that a server reports. If `guess` is true, it is an estimate."""

    tokens: int
    guess: bool = False


def tells(base_url: str) -> bool:
    """True if the server might report its context size."""
    return (urlsplit(base_url).hostname or "").lower() not in _SILENT_HOSTS


async def ask(look: Look, base_url: str, model: str) -> ServedContext | None:
    """Return the server's context size for `model`, or None. `look` must not raise."""
    base = base_url.split("?", 1)[0].rstrip("/")
    root = base.removesuffix("/v1")
    entry = _entry(await look(f"{base}/models"), model)
    if tokens := _of_entry(entry):
        return ServedContext(tokens)
    for path, read in (("/props", _of_props), ("/api/v0/models", _of_lm_studio), ("/api/ps", _of_ollama), ("/info", _of_tgi)):
        served = read(await look(root + path), model)
        if served is not None:
            return served
    return None


def _dict(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[dict[str, Any]]:
    return [_dict(item) for item in cast("list[Any]", value)] if isinstance(value, list) else []


def _entry(listed: Any, model: str) -> dict[str, Any]:
    """Return the model's entry, or the only entry in the list."""
    entries = _list(_dict(listed).get("data")) or _list(listed)
    for entry in entries:
        if model in (entry.get("id"), entry.get("name"), entry.get("root")) or model in (entry.get("aliases") or ()):
            return entry
    return entries[0] if len(entries) == 1 else {}


def _of_entry(entry: dict[str, Any]) -> int:
    return next(filter(None, map(number, [_dict(entry.get("meta")).get("n_ctx"), *map(entry.get, _FIELDS)])), 0)


def _of_props(answer: Any, _: str) -> ServedContext | None:
    """Return llama.cpp's context size per slot."""
    tokens = number(_dict(_dict(answer).get("default_generation_settings")).get("n_ctx"))
    return ServedContext(tokens) if tokens else None


def _of_lm_studio(answer: Any, model: str) -> ServedContext | None:
    """Return the context size loaded in LM Studio, which may be below the model's maximum."""
    tokens = number(_entry(answer, model).get("loaded_context_length"))
    return ServedContext(tokens) if tokens else None


def _of_ollama(answer: Any, model: str) -> ServedContext | None:
    """Return Ollama's context size, or a low guess if the model is not loaded.

    Ollama silently truncates longer prompts.
    """
    if not isinstance(_dict(answer).get("models"), list):
        return None
    names = {model, f"{model}:latest"}
    for entry in _list(_dict(answer)["models"]):
        if names & {entry.get("name"), entry.get("model")}:
            tokens = number(entry.get("context_length"))
            return ServedContext(tokens) if tokens else ServedContext(_OLLAMA_DEFAULT, guess=True)
    return ServedContext(_OLLAMA_DEFAULT, guess=True)


def _of_tgi(answer: Any, _: str) -> ServedContext | None:
    """Return Text Generation Inference's limit for prompt and answer combined."""
    tokens = number(_dict(answer).get("max_total_tokens"))
    return ServedContext(tokens) if tokens else None
