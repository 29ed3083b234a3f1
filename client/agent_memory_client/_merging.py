"""Merge updates into a session's `data`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast

from agent_memory_client.errors import MemoryValidationError

MergeStrategy: TypeAlias = Literal["replace", "merge", "deep_merge"]


def deep_merge(base: Mapping[str, Any], updates: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` updated with `updates`, merging nested objects recursively."""
    merged = dict(base)
    for key, value in updates.items():
        below = merged.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            merged[key] = deep_merge(cast("dict[str, Any]", below), cast("dict[str, Any]", value))
        else:
            merged[key] = value
    return merged


def merge_data(stored: Mapping[str, Any] | None, updates: Mapping[str, Any], strategy: str) -> dict[str, Any]:
    """Return `data` with `updates` applied.

    Raises MemoryValidationError for an unknown strategy.
    """
    match strategy:
        case "replace":
            return dict(updates)
        case "merge":
            return {**(stored or {}), **updates}
        case "deep_merge":
            return deep_merge(stored or {}, updates)
        case _:
            raise MemoryValidationError(f"merge_strategy: must be 'replace', 'merge' or 'deep_merge', got {strategy!r}")
