"""The tools' JSON schemas, in few words: a model reads all of them before its first turn."""

from __future__ import annotations

from typing import Any, Literal, cast

from pydantic import BaseModel

# Of a filter: synonyms and fixed fields are taken, but not worth a model's attention; nor are bounds that nobody reaches.
_UNSAID = frozenset({"not_eq", "in_", "not_in", "field", "enum_class", "inclusive"})
_BOUNDS = frozenset({"minLength", "maxLength", "minItems", "maxItems", "default"})
_NULL = {"type": "null"}


def schema_of(model: type[BaseModel], mode: Literal["validation", "serialization"] = "validation") -> dict[str, Any]:
    """The JSON schema of a model without titles, class descriptions and defaults of null, and with the filters' main operators only."""
    return _object(model.model_json_schema(mode=mode))


def _object(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema, what it holds included."""
    fields: dict[str, Any] | None = schema.get("properties")
    is_filter = fields is not None and {"eq", "ne"} <= fields.keys()
    short: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "title" or (fields is not None and key == "description") or (is_filter and key == "additionalProperties"):
            continue
        if key == "default" and value is None:
            continue  # what may be left out and may be null is null when it is left out
        if key == "$defs":
            short[key] = {name: _object(part) for name, part in value.items()}
        elif key == "properties":
            short[key] = {
                name: _operator(part) if is_filter else _object(part) for name, part in value.items() if not (is_filter and name in _UNSAID)
            }
        else:
            short[key] = _value(value)
    kinds = short.get("anyOf", [])
    if len(kinds) == 2 and kinds[1] == _NULL and isinstance(kinds[0].get("type"), str) and "enum" not in kinds[0]:
        del short["anyOf"]
        short = {**kinds[0], "type": [kinds[0]["type"], "null"], **short}
    return short


def _operator(schema: dict[str, Any]) -> dict[str, Any]:
    """An operator of a filter: its type, without bounds and without null, which is the same as leaving it out."""
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind != _NULL]
    short = {key: _operator(value) if key == "items" else value for key, value in kinds[0].items() if key not in _BOUNDS and key != "title"}
    return cast("dict[str, Any]", short)


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return _object(cast("dict[str, Any]", value))
    return [_value(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value
