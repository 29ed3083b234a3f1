"""The tools' JSON schemas, in few words: a model reads all of them before its first turn.

Arguments use only what every client understands: Gemini's function declarations know no references, no lists of types and no exclusive
bounds, and strict-mode converters refuse objects with any further property.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

from pydantic import BaseModel

Schema = dict[str, Any]

_ARGUMENT_WORDS = ("type", "enum", "format", "default", "minimum", "maximum", "description")
_FORMATS = frozenset({"date-time"})
_LARGEST_BOUND = 2**31
"""Larger bounds only say how many bits a number has."""
# Of a filter: synonyms and fixed fields are taken, but not worth a model's attention.
_UNSAID = frozenset({"not_eq", "in_", "not_in", "field", "enum_class", "inclusive"})
_COMMON = frozenset({"eq", "any", "gte", "lt", "lte"})
_NULL = {"type": "null"}


def input_schema(model: type[BaseModel], common: Collection[str] = ()) -> Schema:
    """Return the JSON schema of a tool's arguments: without references and without null, which the reader takes as not given.

    With `common`, list only these arguments and of filters the common operators; the reader takes the others all the same.
    """
    schema = {key: value for key, value in model.model_json_schema().items() if key != "description"}
    if common:
        schema["properties"] = {name: schema["properties"][name] for name in common}
    return _Arguments(schema.get("$defs", {}), brief=bool(common)).of(schema)


def output_schema(model: type[BaseModel]) -> Schema:
    """Return the JSON schema of a tool's answer, without titles, class descriptions and defaults of null."""
    return _answer(model.model_json_schema(mode="serialization"))


class _Arguments:
    """Makes the schemas of one tool's arguments, whose definitions it knows."""

    def __init__(self, definitions: Mapping[str, Schema], *, brief: bool) -> None:
        self._definitions = definitions
        self._brief = brief

    def of(self, schema: Mapping[str, Any], around: tuple[str, ...] = ()) -> Schema:
        """One argument, what it holds included; `around` names the definitions that it stands in. Raises ValueError for a recursive one."""
        schema, around = self._resolved(schema, around)
        choices = [choice for choice in schema.get("anyOf", ()) if choice != _NULL]
        if len(choices) == 1:
            own = {key: value for key, value in schema.items() if key != "anyOf"}
            return self.of({**choices[0], **own}, around)
        short: Schema = {key: schema[key] for key in _ARGUMENT_WORDS if key in schema and _is_said(key, schema[key])}
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
        """The definition that a schema refers to, with what the schema says itself."""
        if "$ref" not in schema:
            return schema, around
        name = str(schema["$ref"]).rpartition("/")[2]
        if name in around:
            raise ValueError(f"an argument of a tool must not hold itself: {name}")
        own = {key: value for key, value in schema.items() if key != "$ref"}
        # The description of a class is written for programmers.
        meant = {key: value for key, value in self._definitions[name].items() if key != "description"}
        return {**meant, **own}, (*around, name)

    def _listed(self, fields: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """The fields of an object; of a filter the operators that are worth a model's attention."""
        if not {"eq", "ne"} <= fields.keys():
            return list(fields.items())
        return [(name, field) for name, field in fields.items() if (name in _COMMON if self._brief else name not in _UNSAID)]


def _is_said(key: str, value: Any) -> bool:
    match key:
        case "default":
            return value is not None  # what may be left out is null when it is left out
        case "format":
            return value in _FORMATS
        case "minimum" | "maximum":
            return abs(value) < _LARGEST_BOUND
        case _:
            return True


def _answer(schema: Schema) -> Schema:
    """A schema of an answer, what it holds included."""
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
