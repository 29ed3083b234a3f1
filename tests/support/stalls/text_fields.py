"""Find all text fields in a JSON schema, with the smallest valid value for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_DEEPEST = 7
_NO_TEXT = ("enum", "const", "format", "pattern")


@dataclass(frozen=True)
class TextField:
    """A text field and its maximum length (None: unlimited)."""

    path: str
    most: int | None
    build: Callable[[str], Any]
    """Returns the smallest value of the whole schema with a text in this field."""
    schema: str = ""
    """The name of the innermost named schema."""


class SchemaWalk:
    """Walks schemas. `values` gives property contents by name, and `root` resolves `$ref`s."""

    def __init__(self, root: Any, values: Mapping[str, Any]) -> None:
        self._root = root
        self._values = values

    def text_fields(self, schema: Any) -> list[TextField]:
        """Return the text fields of a schema without duplicates."""
        return list({field.path: field for field in self._fields(schema, "", ())}.values())

    def least(self, schema: Any, name: str = "", depth: int = 0) -> Any:
        """Return the smallest valid value, with contents from `values` for known names."""
        schema = self._resolved(schema)
        kind = _type_of(schema)
        if name in self._values and kind in (None, "string"):
            return self._values[name]
        if "const" in schema or "enum" in schema:
            return schema.get("const", (schema.get("enum") or [None])[0])
        if options := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
            return self.least(options[0], name, depth)
        if kind == "object":
            properties = schema.get("properties", {})
            # The discriminator of a value has a default, but must be present.
            kinds = (name for name, part in properties.items() if "const" in part or name == "user_id")
            wanted = dict.fromkeys([*schema.get("required", ()), *kinds])
            return {part: self.least(properties.get(part, {}), part, depth + 1) for part in wanted if depth < _DEEPEST}
        if kind == "array":
            return [self.least(schema.get("items", {}), name, depth + 1)] * max(schema.get("minItems", 0), 1)
        plain = {"string": "hello", "integer": 1, "number": 1, "boolean": True}
        return "2026-01-01T00:00:00Z" if schema.get("format") == "date-time" else plain.get(kind or "string", "hello")

    def _resolved(self, schema: Any) -> Any:
        while "$ref" in schema:
            place = self._root
            for part in schema["$ref"].removeprefix("#/").split("/"):
                place = place[part]
            schema = place
        return schema

    def _fields(self, schema: Any, path: str, within: tuple[str, ...]) -> Iterator[TextField]:
        """Yield text fields. `within` lists the enclosing schemas to stop recursion."""
        if (name := schema.get("$ref")) is not None:
            if name in within:
                return
            within = (*within, name)
        schema = self._resolved(schema)
        for option in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
            yield from self._fields(option, path, within)
        match _type_of(schema):
            case "string" if not any(name in schema for name in _NO_TEXT):
                yield TextField(path, schema.get("maxLength"), lambda text: text, within[-1].rpartition("/")[2] if within else "")
            case "array":
                for field in self._fields(schema.get("items", {}), f"{path}[]", within):
                    yield TextField(field.path, field.most, lambda text, build=field.build: [build(text)], field.schema)
            case "object":
                yield from self._members(schema, path, within)
            case _:
                return

    def _members(self, schema: Any, path: str, within: tuple[str, ...]) -> Iterator[TextField]:
        base = self.least(schema)
        parts = dict(schema.get("properties", {}))
        if not parts and schema.get("additionalProperties", True) is not False:
            more = schema.get("additionalProperties")
            parts = {"note": more if isinstance(more, dict) and more else {"type": "string"}}
        for name, part in parts.items():
            for field in self._fields(part, f"{path}.{name}" if path else name, within):
                yield TextField(
                    field.path, field.most, lambda text, name=name, build=field.build: {**base, name: build(text)}, field.schema
                )


def _type_of(schema: Any) -> str | None:
    kind = schema.get("type")
    if isinstance(kind, list):
        return next((each for each in kind if each != "null"), None)
    return kind or ("object" if "properties" in schema else None)
