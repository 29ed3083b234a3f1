"""Apply Mem0 filters that the index cannot evaluate."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from datetime import date, datetime, tzinfo
from typing import Any

from pydantic import ValidationError

from agent_memory.foundation.core.clock import calendar_day
from agent_memory.foundation.core.errors import BadInput, NotSupported
from agent_memory.interfaces.compat.mem0.filters import JOINS, METADATA_KEY, METADATA_OPERATORS, PARTS, text_ids
from agent_memory.interfaces.compat.mem0.requests import ENTITY_IDS
from agent_memory.interfaces.compat.service import bad_input, refuse_unknown
from agent_memory_client.models import CreatedAt

_TIMES = {"created_at": "created_at", "timestamp": "created_at", "updated_at": "updated_at"}
_TEXTS = {"keywords": "memory", "memory_ids": "id"}
# Operators that apply to plain values.
_PLAIN = {"keywords": "icontains", "memory_ids": "eq"}
_OPERATORS = frozenset({*METADATA_OPERATORS, *PARTS})
_BOUNDS: Mapping[str, Callable[[Any, Any], bool]] = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}
NO_MEMORY: Mapping[str, Any] = {
    "id": "",
    "memory": "",
    "categories": [],
    **dict.fromkeys((*ENTITY_IDS, "metadata")),
    **dict.fromkeys(("created_at", "updated_at"), "1970-01-01T00:00:00+00:00"),
}
"""An empty memory for testing whether a filter is valid."""


def needs_reading(filters: object) -> bool:
    """True if the index cannot evaluate the filter."""
    if isinstance(filters, list):
        return any(map(needs_reading, filters))
    if not isinstance(filters, Mapping):
        return False
    return any(needs_reading(value) if str(name).lower() in JOINS else _is_read(str(name), value) for name, value in filters.items())


def indexed_part(filters: object) -> Any:
    """Return a filter for the index that matches at least all results. None matches everything."""
    if not isinstance(filters, Mapping):
        return filters
    indexed: dict[str, Any] = {}
    for name, value in filters.items():
        join = str(name).lower()
        if not (needs_reading(value) if join in JOINS else _is_read(str(name), value)):
            indexed[name] = value
        elif join == "and":
            parts = [part for each in (value if isinstance(value, list) else [value]) if (part := indexed_part(each))]
            indexed |= {name: parts} if parts else {}
    return indexed or None


def matches(filters: object, memory: Mapping[str, Any], zone: tzinfo) -> bool:
    """True if a memory in Mem0's format matches the filters.

    Dates with no time are in the time zone `zone`. Raises BadInput or NotSupported.
    """
    if not isinstance(filters, Mapping):
        raise BadInput("must be an object", field="filters")
    # Evaluate every part, so that an unknown field always raises an error.
    passed = [_passes(str(name), value, memory, zone) for name, value in filters.items()]
    return all(passed)


def _passes(name: str, value: Any, memory: Mapping[str, Any], zone: tzinfo) -> bool:
    join = name.lower()
    if join not in JOINS:
        return _field_passes(name, value, memory, zone)
    passed = [matches(part, memory, zone) for part in (value if isinstance(value, list) else [value])]
    return all(passed) if join == "and" else any(passed) == (join == "or")


def _field_passes(name: str, value: Any, memory: Mapping[str, Any], zone: tzinfo) -> bool:
    if name in _TIMES:
        return _time_passes(name, value, datetime.fromisoformat(memory[_TIMES[name]]), zone)
    if name == "metadata" or name.startswith(METADATA_KEY):
        expected = value if name == "metadata" else {name.removeprefix(METADATA_KEY): value}
        return isinstance(expected, Mapping) and all(
            _value_passes((memory["metadata"] or {}).get(key), each) for key, each in expected.items()
        )
    if name in _TEXTS:
        expected = value if isinstance(value, list) else [value]
        return any(_value_passes(memory[_TEXTS[name]], each if isinstance(each, Mapping) else {_PLAIN[name]: each}) for each in expected)
    if name not in (*ENTITY_IDS, "categories"):
        raise BadInput("is not a field of Mem0's filters: correct or remove it", field=f"filters.{name[:64]}")
    return memory[name] not in (None, []) if value == "*" else _value_passes(memory[name], text_ids(value))


def _value_passes(value: Any, condition: Any) -> bool:
    if isinstance(condition, list):
        return _is_one_of(value, condition)
    if not isinstance(condition, Mapping):
        return _equals(value, condition)
    if not is_operators(condition):
        return isinstance(value, Mapping) and all(_value_passes(value.get(key), each) for key, each in condition.items())
    return all(_TESTS[name](value, operand) for name, operand in condition.items())


def is_operators(condition: Mapping[Any, Any]) -> bool:
    """True if all keys are operators, or False if they are metadata keys.

    Raises NotSupported for an unknown operator.
    """
    unknown = [name for name in map(str, condition) if name not in _OPERATORS]
    # Metadata keys do not begin with "$", and do not occur together with operators.
    if unknown and (len(unknown) < len(condition) or unknown[0].startswith("$")):
        raise NotSupported(f"filters.metadata.{min(unknown)[:64]}")
    return bool(condition) and not unknown


def _is_read(name: str, value: Any) -> bool:
    if name in _TEXTS or name == "updated_at":
        return True
    if name == "categories":
        return isinstance(value, Mapping) and not PARTS.isdisjoint(value)
    if name.startswith(METADATA_KEY):
        value = {name.removeprefix(METADATA_KEY): value}
    elif name != "metadata":
        return False
    if not isinstance(value, Mapping):
        return False
    # The index cannot match nested objects and parts of texts.
    return any(isinstance(each, Mapping) and (not is_operators(each) or not PARTS.isdisjoint(each)) for each in value.values())


def _equals(value: Any, expected: Any) -> bool:
    if isinstance(value, list) and not isinstance(expected, list):
        return any(_equals(each, expected) for each in value)
    # In Python, True equals 1.
    return isinstance(value, bool) == isinstance(expected, bool) and value == expected


def _is_one_of(value: Any, expected: Any) -> bool:
    return any(_equals(value, each) for each in (expected if isinstance(expected, list) else [expected]))


def _contains(value: Any, part: Any, fold: Callable[[str], str] = str) -> bool:
    if isinstance(value, list):
        return any(_contains(each, part, fold) for each in value)
    if isinstance(value, str) and isinstance(part, str):
        return fold(part) in fold(value)
    return _equals(value, part)


def _compares(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compare(value: Any, bound: Any) -> bool:
        numbers = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in (value, bound))
        return (numbers or (isinstance(value, str) and isinstance(bound, str))) and test(value, bound)

    return compare


_TESTS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": _equals,
    "ne": lambda value, expected: not _equals(value, expected),
    "in": _is_one_of,
    "nin": lambda value, expected: not _is_one_of(value, expected),
    "contains": _contains,
    "icontains": lambda value, part: _contains(value, part, str.casefold),
    **{name: _compares(test) for name, test in _BOUNDS.items()},
}
_TIME_TESTS: Mapping[str, Callable[[Any, Any], bool]] = {"eq": operator.eq, "ne": operator.ne, **_BOUNDS}


def _time_passes(name: str, condition: Any, moment: datetime, zone: tzinfo) -> bool:
    conditions = condition if isinstance(condition, Mapping) else {"eq": condition}
    refuse_unknown(conditions, _TIME_TESTS, f"filters.{name}.")
    try:
        bounds = CreatedAt.model_validate(conditions)
    except ValidationError as error:
        raise bad_input(error, f"filters.{name}") from None
    test_bounds: dict[str, date] = {test: bound for test in conditions if (bound := getattr(bounds, test)) is not None}
    if name != "updated_at":
        # Compare whole seconds, as the index does.
        moment = moment.replace(microsecond=0)
        test_bounds = {test: bound.replace(microsecond=0) if isinstance(bound, datetime) else bound for test, bound in test_bounds.items()}
    day = calendar_day(moment, zone)
    return all(_TIME_TESTS[test](moment if isinstance(bound, datetime) else day, bound) for test, bound in test_bounds.items())
