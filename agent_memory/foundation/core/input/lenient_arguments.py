"""Accept tool arguments in the forms that language models produce.

Models may send null for a missing field, a single item instead of a list, or a JSON string instead
of an object or list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema, from_json

from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.input.bounds import check_lists, looks_like_json

_AROUND = frozenset({"default", "nullable", "function-before", "function-after", "function-wrap"})
"""Schema types that wrap a value's schema."""

_Read = Callable[[Any], Any]


def lenient(schema: CoreSchema) -> CoreSchema:
    """Return a copy of `schema` with lenient validation, except for unions and free-form JSON."""
    return _Copy(schema).copy(schema)


def parse_json_text(value: Any) -> Any:
    """Parse a JSON object or list in a string. Return other values unchanged.

    Raises PydanticCustomError if a list is too long.
    """
    if isinstance(value, str) and looks_like_json(value):
        try:
            parsed = from_json(value)
        except ValueError:
            return value  # validation reports what it expected
        try:
            check_lists(parsed, "")
        except BadInput as error:
            raise PydanticCustomError("too_long", "{reason}", {"reason": error.message}) from None
        return parsed
    return value


class _Copy:
    def __init__(self, schema: Any) -> None:
        definitions = schema["definitions"] if schema["type"] == "definitions" else ()
        self._definitions = {definition["ref"]: definition for definition in definitions}

    def copy(self, node: Any) -> Any:
        if isinstance(node, (list, tuple)):
            parts = [self.copy(part) for part in cast("Sequence[Any]", node)]
            return tuple(parts) if isinstance(node, tuple) else parts
        if not isinstance(node, dict) or node.get("type") in ("union", "tagged-union"):
            return node
        copy = {key: value if key == "metadata" else self.copy(value) for key, value in cast("dict[str, Any]", node).items()}
        match copy.get("type"):
            case "model":
                copy["schema"] = _before(self._without_nulls(copy), copy["schema"])
            case "model-field":
                copy["schema"] = self._field(copy["schema"])
            case "list" if "items_schema" in copy:
                copy["items_schema"] = self._field(copy["items_schema"])
            case _:
                pass
        return copy

    def _field(self, schema: Any) -> Any:
        if schema["type"] == "default":
            return {**schema, "schema": self._field(schema["schema"])}
        value = self._value(schema)
        match value["type"]:
            case "list":
                return _before(_as_list, schema)
            case "dict":
                return _before(parse_json_text, schema)
            case "model":
                return _before(_as_object(value["cls"]), schema)
            case _:
                return schema

    def _value(self, schema: Any) -> Any:
        while schema["type"] in _AROUND or schema["type"] == "definition-ref":
            schema = self._definitions[schema["schema_ref"]] if schema["type"] == "definition-ref" else schema["schema"]
        return schema

    def _without_nulls(self, model: Any) -> _Read:
        model_fields: Mapping[str, FieldInfo] = model["cls"].model_fields
        # Keep fields that the JSON schema requires, even if they are optional in the model: null has a meaning there.
        needed = model["cls"].model_json_schema().get("required", ())
        optional = {alias for name, field in model_fields.items() if not field.is_required() for alias in (name, field.alias)} - set(needed)
        fields: Mapping[str, Any] = self._value(model["schema"]).get("fields", {})
        objects = {
            alias
            for name, field in fields.items()
            if self._value(field["schema"])["type"] == "model"
            for alias in (name, field.get("validation_alias", name))
        }

        def read(value: Any) -> Any:
            if not isinstance(value, dict):
                return value
            object_fields = cast("dict[str, Any]", value)
            return {
                name: item
                for name, item in object_fields.items()
                if name not in optional or not (_is_null(item) if name in objects else item is None)
            }

        return read


def _is_null(value: Any) -> bool:
    """True for null, and for a non-empty object in which all values are null."""
    if not isinstance(value, dict) or not value:
        return value is None
    return all(_is_null(item) for item in cast("dict[str, Any]", value).values())


def _before(read: _Read, schema: Any) -> CoreSchema:
    return core_schema.no_info_before_validator_function(read, schema)


def _as_list(value: Any) -> Any:
    value = parse_json_text(value)
    return [value] if isinstance(value, (str, Mapping)) else value


def _as_object(model: type[BaseModel]) -> _Read:
    names = model.model_fields
    required = [name for name, field in names.items() if field.is_required()]
    is_filter = {"eq", "any"} <= names.keys()

    def read(value: Any) -> Any:
        value = parse_json_text(value)
        if is_filter:
            return {"any": value} if isinstance(value, list) else value
        is_text = isinstance(value, str) and not looks_like_json(value)
        return {required[0]: value} if is_text and len(required) == 1 else value

    return read
