"""Match values and namespace paths the way `langgraph.store.base` does."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from agent_memory.foundation.core.errors import BadInput
from agent_memory_client.models import PathCondition

_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}
_OPERATORS = ("$eq", "$ne", *_COMPARISONS)


def check_filter(conditions: Mapping[str, Any], field: str = "filter") -> None:
    """Raise BadInput for an invalid filter."""
    for name, condition in conditions.items():
        if not isinstance(condition, dict):
            continue
        nested = cast("dict[str, Any]", condition)
        operators = [key for key in nested if key.startswith("$")]
        for key in operators:
            if key not in _OPERATORS:
                raise BadInput(f"unknown operator {key[:40]}: use one of {', '.join(_OPERATORS)}", field=f"{field}.{name}")
        if operators and len(operators) < len(nested):
            raise BadInput("must contain either operators or nested fields, not both", field=f"{field}.{name}")
        if not operators:
            check_filter(nested, f"{field}.{name}")


def matches_filter(value: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    """True if a value matches a filter. A missing field counts as null."""
    return all(_matches(value.get(name), condition) for name, condition in conditions.items())


def _matches(actual: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        conditions = cast("dict[str, Any]", expected)
        if any(name.startswith("$") for name in conditions):
            return all(_compare(actual, name, operand) for name, operand in conditions.items())
        return isinstance(actual, dict) and matches_filter(cast("dict[str, Any]", actual), conditions)
    if isinstance(expected, list):
        items, others = cast("list[Any]", expected), cast("list[Any]", actual)
        return isinstance(actual, list) and len(items) == len(others) and all(map(_matches, others, items))
    return _equal(actual, expected)


def _compare(actual: Any, name: str, operand: Any) -> bool:
    if name == "$eq":
        return _equal(actual, operand)
    if name == "$ne":
        return not _equal(actual, operand)
    numbers = _is_number(actual) and _is_number(operand)
    return (numbers or (isinstance(actual, str) and isinstance(operand, str))) and _COMPARISONS[name](actual, operand)


def _equal(actual: Any, expected: Any) -> bool:
    # In Python, True == 1; in JSON, true and 1 differ.
    return actual == expected and isinstance(actual, bool) == isinstance(expected, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def select_paths(paths: Iterable[Sequence[str]], conditions: Sequence[PathCondition], max_depth: int | None) -> list[tuple[str, ...]]:
    """Return the distinct matching paths, truncated to `max_depth` labels and sorted."""
    selected = {tuple(path[:max_depth]) for path in paths if all(_meets(path, condition) for condition in conditions)}
    return sorted(selected)


def _meets(path: Sequence[str], condition: PathCondition) -> bool:
    pattern = condition.path
    if len(path) < len(pattern):
        return False
    labels = path[: len(pattern)] if condition.match_type == "prefix" else path[len(path) - len(pattern) :]
    return all(label in ("*", actual) for actual, label in zip(labels, pattern, strict=True))
