"""Convert filters from versions 3.x and 5.x of Supermemory's clients to filter conditions."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from agent_memory.foundation.core.errors import BadInput, NotSupported
from agent_memory.interfaces.compat.service import bad_input
from agent_memory_client.models import Condition

Values = Mapping[str, Collection[str]]
MAX_DEPTH = 8
_PARTS = ("contains", "notContains")
_BOUNDS = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte", "=": "eq"}
# A list equals each value that it contains, as in our index.
_OPERATORS = {**_BOUNDS, "==": "eq", "!=": "ne", "eq": "eq", "neq": "ne", "arrayContains": "eq", "arrayNotContains": "ne",
              "gt": "gt", "gte": "gte", "lt": "lt", "lte": "lte"}  # fmt: skip


def condition_of(filters: object, values: Values | None = None) -> dict[str, Any] | None:
    """Convert filters to a condition, or return None if there are none.

    `values` maps each key from `text_keys` to its existing strings. Raises BadInput or
    NotSupported.
    """
    if isinstance(filters, str):
        filters = _parsed(filters)
    condition = None if filters in (None, {}) else _read(filters, 0, values or {})
    if condition is None:
        return None
    try:
        Condition.model_validate(condition)
    except ValidationError as error:
        raise bad_input(error, "filters") from None
    return condition


def text_keys(filters: object) -> set[str]:
    """Return the metadata keys that are filtered by substring or case-insensitively."""
    waiting, keys = [_parsed(filters) if isinstance(filters, str) else filters], set[str]()
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            if _compares_text(part):
                keys.add(str(part.get("field", part.get("key"))))
            waiting += [part.get(name) for name in ("AND", "OR", "operands")]
        elif isinstance(part, list):
            waiting += part
    return keys


def _compares_text(part: Mapping[Any, Any]) -> bool:
    if "field" in part:
        return part.get("operator") in _PARTS or (part.get("caseSensitive") is False and isinstance(part.get("value"), str))
    return "key" in part and (part.get("filterType") == "string_contains" or part.get("ignoreCase") in (True, "true"))


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BadInput("must be an object, or the text of one in JSON", field="filters") from None


def _read(part: object, depth: int, values: Values) -> dict[str, Any] | None:
    if not isinstance(part, Mapping) or depth > MAX_DEPTH:
        raise BadInput(f"must be an object of at most {MAX_DEPTH} levels", field="filters")
    for name in ("AND", "OR"):
        if name in part:
            return _joined(name.lower(), part[name], depth, values)
    operator = part.get("operator")
    if operator in ("and", "or") and "operands" in part:
        return _joined(operator, part["operands"], depth, values)
    if "field" in part:
        if _compares_text(part):
            return _by_text(part, values)
        if str(operator) not in _OPERATORS:
            raise NotSupported(f"filter.operator: {str(operator)[:64]}")
        return _metadata(part["field"], _OPERATORS[str(operator)], [part.get("value")])
    if "key" in part:
        return _predicate(part, values)
    raise BadInput("must have AND, OR, key or field", field="filters")


def _joined(join: str, operands: object, depth: int, values: Values) -> dict[str, Any] | None:
    if not isinstance(operands, list):
        raise BadInput("must be a list", field=f"filters.{join.upper()}")
    parts = [read for operand in operands if (read := _read(operand, depth + 1, values)) is not None]
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else {join: parts}


def _by_text(part: Mapping[str, Any], values: Values) -> dict[str, Any]:
    operator, key = part.get("operator"), str(part.get("field", part.get("key")))
    if operator not in (*_PARTS, "eq", "neq", None):
        raise NotSupported(f"filter.operator: {str(operator)[:64]} with caseSensitive: false")
    within = operator in _PARTS or part.get("filterType") == "string_contains"
    folds = part.get("caseSensitive") is False or part.get("ignoreCase") in (True, "true")
    expected = part.get("value")
    if not isinstance(expected, str) or (within and not expected):
        raise BadInput("must be a text", field="filters.value")
    spell = str.casefold if folds else str
    folded_value = spell(expected)
    fitting = [value for value in values.get(key, ()) if (folded_value in spell(value) if within else folded_value == spell(value))]
    alike = [expected] if within or "field" in part else _alike(expected)
    fitting = [*alike, *(value for value in fitting if value != expected)]
    condition = _metadata(key, "eq", fitting)
    negated = operator in ("notContains", "neq") or part.get("negate") in (True, "true")
    return {"not": condition} if negated else condition


def _predicate(part: Mapping[str, Any], existing_values: Values) -> dict[str, Any]:
    kind = part.get("filterType", "metadata")
    value: object = part.get("value")
    if kind != "numeric" and _compares_text(part):
        return _by_text(part, existing_values)
    if kind == "numeric":
        try:
            values: list[Any] = [float(str(value))]
        except ValueError:
            raise BadInput("must be a number", field="filters.value") from None
        operator = _BOUNDS.get(str(part.get("numericOperator", "=")))
        if operator is None:
            raise NotSupported("filters.numericOperator")
    else:
        values, operator = _alike(value), "eq"
    condition = _metadata(part["key"], operator, values)
    return {"not": condition} if part.get("negate") in (True, "true") else condition


def _alike(value: object) -> list[Any]:
    """Return the values that a filter value may represent. 3.x clients send all values as text."""
    if not isinstance(value, str):
        return [value]
    values: list[Any] = [value]
    if value in ("true", "false"):
        values.append(value == "true")
    with suppress(ValueError):
        values.append(float(value))
    return values


def _metadata(key: object, operator: str, values: list[Any]) -> dict[str, Any]:
    condition = {"any": values} if operator == "eq" and len(values) > 1 else {operator: values[0]}
    return {"metadata": {str(key): condition}}
