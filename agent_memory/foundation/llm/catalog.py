"""Look up context windows and embedding dimensions by model name."""

from __future__ import annotations

from functools import lru_cache

from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.settings import ModelSettings
from agent_memory.foundation.core.tables import read_table
from agent_memory.foundation.llm.model_context import ModelContext

log = get_logger(__name__)

_TABLES = read_table("llm/data/models.toml")
CONTEXT_WINDOWS: dict[str, int] = _TABLES["context_windows"]
FAMILIES: dict[str, int] = _TABLES["families"]
EMBEDDING_DIMENSIONS: dict[str, int] = _TABLES["embedding_dimensions"]


def context_window(model: str | None, settings: ModelSettings) -> int:
    """Return a model's context window in tokens.

    Check the settings first, then the table, the model's family, and the default.
    """
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
    """Return the context limits for `model` on the server `where`."""
    configured = settings.context_windows.get(model)
    return ModelContext(where, model, configured=configured, assumed=context_window(model, settings))


def embedding_dimensions(model: str) -> int | None:
    """Return the number of dimensions in the model's vectors, or None if unknown."""
    name = _base(model)
    return EMBEDDING_DIMENSIONS.get(name) or EMBEDDING_DIMENSIONS.get(name.removesuffix(":latest"))


@lru_cache(maxsize=1024)
def _known_window(model: str) -> int | None:
    name = _base(model)
    if name in CONTEXT_WINDOWS:
        return CONTEXT_WINDOWS[name]
    # A dated or tagged variant of a model in the table, such as gpt-4o-2024-11-20.
    variants = [entry for entry in CONTEXT_WINDOWS if name.startswith((f"{entry}-2", f"{entry}:", f"{entry}@"))]
    if variants:
        return CONTEXT_WINDOWS[max(variants, key=len)]
    families = [family for family in FAMILIES if name.startswith(family)]
    return FAMILIES[max(families, key=len)] if families else None


def _base(model: str) -> str:
    """Return the lowercase model name with any provider or fine-tuning prefix removed."""
    name = model.strip().lower().removeprefix("ft:").rsplit("/", 1)[-1]
    start = name.find("claude-")
    if start > 0 and name[start - 1] == "." and name.removeprefix("us.").removeprefix("eu.") not in CONTEXT_WINDOWS:
        return name[start:]
    return name


@lru_cache(maxsize=256)
def _log_unknown(model: str, default: int) -> None:
    log.info("context window of the model unknown; using the default", model=model, tokens=default, hint="set MODEL_CONTEXT_WINDOWS")
