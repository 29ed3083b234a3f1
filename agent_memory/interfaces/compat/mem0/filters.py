"""Convert Mem0's filters to this server's conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from agent_memory.foundation.core.errors import BadInput, NotSupported
from agent_memory.interfaces.compat.mem0.requests import APP, ENTITY_IDS, NAMED, text_id
from agent_memory.interfaces.compat.service import bad_input, refuse_unknown
from agent_memory_client.models import Condition

MAX_DEPTH = 8
ENTITIES = {"user_id": "user_id", "agent_id": "agent_id", "run_id": "session_id"}
_TAG_OPERATORS = {"eq": "eq", "ne": "ne", "in": "any", "contains": "eq", "icontains": "eq"}
PARTS = frozenset({"contains", "icontains"})
_BOUNDS = {"gt", "gte", "lt", "lte"}
METADATA_OPERATORS = {"eq": "eq", "ne": "ne", "in": "any", "nin": "none", **{name: name for name in _BOUNDS}}
METADATA_KEY = "metadata."
_UNSUPPORTED_FIELDS = {"text", "feedback", "feedback_reason"}
JOINS = ("and", "or", "not")
_NO_ANSWER = {"not": {"memory_type": {"eq": "message"}, "user_id": {"exists": True}, "metadata": {"role": {"eq": "assistant"}}}}


def shown_selection(*, extracts: bool) -> dict[str, Any]:
    """Return the conditions that apply to all lists and searches.

    If a model extracts facts (`extracts`), select facts. Otherwise, select messages.
    """
    return {"memory_type": {"ne": "message"}} if extracts else {"filter": _NO_ANSWER}


def condition_of(filters: object) -> Condition | None:
    """Convert Mem0's filters to a condition, or return None if there are none.

    Raises BadInput or NotSupported.
    """
    joined = _joined(filters, 0)
    if joined is None:
        return None
    try:
        return Condition.model_validate(joined)
    except ValidationError as error:
        raise bad_input(error, "filters") from None


def only_entities(filters: object) -> dict[str, str] | None:
    """Return the user, agent, run and app, or None if there are any other filters."""
    if not isinstance(filters, Mapping):
        return None
    joined = filters.get("AND") if list(filters) == ["AND"] else [filters]
    named: dict[str, str] = {}
    for part in joined if isinstance(joined, list) else [None]:
        if not isinstance(part, Mapping):
            return None
        for name, value in part.items():
            text = text_id(value)
            if name not in ENTITY_IDS or name in named or not isinstance(text, str):
                return None
            named[name] = text
    return named


def _joined(filters: object, depth: int) -> dict[str, Any] | None:
    if filters is None or filters == {}:
        return None
    if not isinstance(filters, Mapping) or depth > MAX_DEPTH:
        raise BadInput(f"must be an object of at most {MAX_DEPTH} levels", field="filters")
    parts: list[dict[str, Any]] = []
    for key, value in filters.items():
        name = str(key)
        join = name.lower()
        part = _operands(join, value, depth) if join in JOINS else _field(name, value)
        if part is not None:
            parts.append(part)
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else {"and": parts}


def _operands(join: str, value: object, depth: int) -> dict[str, Any] | None:
    operands = value if isinstance(value, list) else [value]
    if not operands:
        raise BadInput("must have a condition", field=f"filters.{join.upper()}")
    joined = [_joined(operand, depth + 1) for operand in operands]
    parts = [part for part in joined if part is not None]
    if len(parts) < len(joined):
        # "*" matches everything: an OR with it matches everything, an AND ignores it, and a NOT would match nothing.
        if join == "not":
            raise NotSupported("filters.NOT: everything")
        if join == "or":
            return None
    if not parts:
        return None
    if join == "not":
        return {"not": parts[0] if len(parts) == 1 else {"or": parts}}
    return parts[0] if len(parts) == 1 else {join: parts}


def _field(name: str, value: object) -> dict[str, Any] | None:
    if value is None:
        raise NotSupported(f"filters.{name}: null")
    if name in ENTITIES and value == "*":
        # The index can find memories with any user. Metadata records whether a memory has an agent or a run.
        return {"user_id": {"exists": True}} if name == "user_id" else {"metadata": {NAMED: {"eq": name}}}
    if name in ENTITIES:
        return _tag(ENTITIES[name], name, value)
    if name == "categories":
        return None if value == "*" else _tag("category", name, value)
    if name.startswith(METADATA_KEY):
        return _metadata({name.removeprefix(METADATA_KEY): value})
    reader = _FIELDS.get(name)
    if reader is None:
        if name not in _UNSUPPORTED_FIELDS:
            raise BadInput("is not a field of Mem0's filters: correct or remove it", field=f"filters.{name[:64]}")
        raise NotSupported(f"filters.{name}")
    return reader(value)


def _tag(field: str, name: str, value: object) -> dict[str, Any]:
    value = text_ids(value)
    if isinstance(value, list):
        return {field: {"any": value}}
    if not isinstance(value, Mapping):
        return {field: {"eq": value}}
    refuse_unknown(value, _TAG_OPERATORS, f"filters.{name}.")
    return {field: {_TAG_OPERATORS[operator]: operand for operator, operand in value.items()}}


def text_ids(value: Any) -> Any:
    """Convert all integers in an id condition to strings."""
    if isinstance(value, list):
        return [text_id(each) for each in value]
    return {operator: text_ids(each) for operator, each in value.items()} if isinstance(value, Mapping) else text_id(value)


def _metadata(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not value:
        raise BadInput("must be an object of keys and their values", field="filters.metadata")
    conditions: dict[str, Any] = {}
    for key, condition in value.items():
        if isinstance(condition, Mapping):
            refuse_unknown(condition, METADATA_OPERATORS, "filters.metadata.")
            conditions[str(key)] = {METADATA_OPERATORS[operator]: operand for operator, operand in condition.items()}
        else:
            conditions[str(key)] = {"eq": condition}
    return {"metadata": conditions}


def _app(value: object) -> dict[str, Any]:
    return {"metadata": {APP: {"exists": True}}} if value == "*" else _metadata({APP: value})


def _created(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {"created_at": {"eq": value}}
    refuse_unknown(value, (*_BOUNDS, "eq", "ne"), "filters.created_at.")
    return {"created_at": dict(value)}


_FIELDS: dict[str, Callable[[object], dict[str, Any]]] = {
    "metadata": _metadata,
    "created_at": _created,
    "timestamp": _created,
    "app_id": _app,
}
