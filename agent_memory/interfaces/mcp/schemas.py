"""Create short JSON schemas for the MCP tools, because models have to read all of them.

Gemini does not support references, type lists or exclusive bounds. Converters to OpenAI's strict
mode reject objects with arbitrary properties.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

from pydantic import BaseModel

Schema = dict[str, Any]

_ARGUMENT_WORDS = ("type", "enum", "format", "default", "minimum", "maximum", "description")
_FORMATS = frozenset({"date-time"})
_LARGEST_BOUND = 2**31
"""Schemas omit larger bounds, which only reflect the size of an integer type."""
# Synonyms and fixed fields of filters, which are accepted but not listed.
_OMITTED_FIELDS = frozenset({"not_eq", "in_", "not_in", "field", "enum_class", "inclusive"})
_COMMON = frozenset({"eq", "any", "gte", "lt", "lte"})
_NULL = {"type": "null"}


def input_schema(model: type[BaseModel], common: Collection[str] = ()) -> Schema:
    """Return the JSON schema for a tool's arguments, with no references or null.

    If `common` is not empty, list only the arguments in it.
    """
    schema = {key: value for key, value in model.model_json_schema().items() if key != "description"}
    if common:
        schema["properties"] = {name: schema["properties"][name] for name in common}
    return _Arguments(schema.get("$defs", {}), brief=bool(common)).of(schema)


def output_schema(model: type[BaseModel]) -> Schema:
    """Return a JSON schema for responses. Omit titles, class descriptions, and null defaults."""
    return _answer(model.model_json_schema(mode="serialization"))


class _Arguments:
    def __init__(self, definitions: Mapping[str, Schema], *, brief: bool) -> None:
        self._definitions = definitions
        self._brief = brief

    def of(self, schema: Mapping[str, Any], around: tuple[str, ...] = ()) -> Schema:
        """Return a short schema. `around` contains the names of the enclosing definitions.

        Raises ValueError if a definition contains itself.
        """
        schema, around = self._resolved(schema, around)
        choices = [choice for choice in schema.get("anyOf", ()) if choice != _NULL]
        if len(choices) == 1:
            own = {key: value for key, value in schema.items() if key != "anyOf"}
            return self.of({**choices[0], **own}, around)
        short: Schema = {key: schema[key] for key in _ARGUMENT_WORDS if key in schema and _is_shown(key, schema[key])}
        if choices:
            short["anyOf"] = [self.of(choice, around) for choice in choices]
        if "const" in schema:
            short["enum"] = [schema["const"]]
        if "items" in schema:
            short["items"] = self.of(schema["items"], around)
        if "properties" in schema:
            short["properties"] = {name: self.of(field, around) for name, field in self._listed(schema["properties"])}
        if schema.get("required"):
            short["required"] = schema["required"]
        return short

    def _resolved(self, schema: Mapping[str, Any], around: tuple[str, ...]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """Resolve a reference. The schema's own keys override those in the definition."""
        if "$ref" not in schema:
            return schema, around
        name = str(schema["$ref"]).rpartition("/")[2]
        if name in around:
            raise ValueError(f"an argument of a tool must not contain itself: {name}")
        own = {key: value for key, value in schema.items() if key != "$ref"}
        # Omit class descriptions, which are for programmers.
        definition = {key: value for key, value in self._definitions[name].items() if key != "description"}
        return {**definition, **own}, (*around, name)

    def _listed(self, fields: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Return the fields to list. For a filter, include only useful operators."""
        if not {"eq", "ne"} <= fields.keys():
            return list(fields.items())
        return [(name, field) for name, field in fields.items() if (name in _COMMON if self._brief else name not in _OMITTED_FIELDS)]


def _is_shown(key: str, value: Any) -> bool:
    match key:
        case "default":
            return value is not None  # an optional argument is null if it is omitted
        case "format":
            return value in _FORMATS
        case "minimum" | "maximum":
            return abs(value) < _LARGEST_BOUND
        case _:
            return True


def _answer(schema: Schema) -> Schema:
    has_fields = "properties" in schema
    short: Schema = {}
    for key, value in schema.items():
        if key == "title" or (has_fields and key == "description") or (key == "default" and value is None):
            continue
        if key in ("$defs", "properties"):
            short[key] = {name: _answer(part) for name, part in value.items()}
        else:
            short[key] = _answer_value(value)
    kinds = short.get("anyOf", [])
    if len(kinds) == 2 and kinds[1] == _NULL and isinstance(kinds[0].get("type"), str) and "enum" not in kinds[0]:
        del short["anyOf"]
        short = {**kinds[0], "type": [kinds[0]["type"], "null"], **short}
    return short


def _answer_value(value: Any) -> Any:
    if isinstance(value, dict):
        return _answer(cast("Schema", value))
    return [_answer_value(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value
