"""Tool schemas for language models, with customizable names and descriptions."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Literal, Self, TypeAlias, cast

SchemaFormat: TypeAlias = Literal["openai", "anthropic"]


class ToolSchema:
    """The schema of one tool. Setters return this object, so that calls can be chained."""

    def __init__(self, schema: dict[str, Any], schema_format: SchemaFormat = "openai") -> None:
        self._schema = schema
        self._format: SchemaFormat = schema_format

    @property
    def format(self) -> SchemaFormat:
        return self._format

    def get_name(self) -> str:
        """Return the tool's name.

        Raises ValueError if the schema's format is invalid. This applies to all methods.
        """
        return self._text_of("name")

    def get_description(self) -> str:
        return self._text_of("description")

    def set_name(self, name: str) -> Self:
        """Rename the tool. `resolve_tool_call` recognizes only the original name."""
        self._head()["name"] = name
        return self

    def set_description(self, description: str) -> Self:
        self._head()["description"] = description
        return self

    def get_parameter_description(self, param_name: str) -> str | None:
        """Return a parameter's description, or None if it has none."""
        parameter = self._parameters().get(param_name)
        return None if parameter is None else parameter.get("description")

    def set_parameter_description(self, param_name: str, description: str) -> Self:
        """Replace a parameter's description. Raises KeyError for an unknown parameter."""
        parameters = self._parameters()
        if param_name not in parameters:
            raise KeyError(f"{self.get_name()} has no parameter {param_name!r}, it has {', '.join(parameters) or 'none'}")
        parameters[param_name]["description"] = description
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return a copy as plain data in the provider's format."""
        return deepcopy(self._schema)

    def copy(self) -> ToolSchema:
        return ToolSchema(self.to_dict(), self._format)

    def to_anthropic(self) -> ToolSchema:
        """Return a copy in Anthropic's format."""
        if self._format == "anthropic":
            return self.copy()
        head = self._head()
        return ToolSchema(deepcopy({"name": head["name"], "description": head["description"], "input_schema": self._rules()}), "anthropic")

    def __getitem__(self, key: str) -> Any:
        return self._schema[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._schema[key] = value

    def __contains__(self, key: str) -> bool:
        return key in self._schema

    def __repr__(self) -> str:
        return f"ToolSchema(name={self.get_name()!r}, format={self._format!r})"

    def _head(self) -> dict[str, Any]:
        head: Any = self._schema.get("function") if self._format == "openai" else self._schema
        if not isinstance(head, dict):
            raise ValueError("not a tool schema in OpenAI's format: it has no object 'function'")
        return cast("dict[str, Any]", head)

    def _text_of(self, key: str) -> str:
        text: Any = self._head().get(key)
        if not isinstance(text, str):
            raise ValueError(f"not a tool schema in the {self._format} format: it has no {key}")
        return text

    def _rules(self) -> dict[str, Any]:
        key = "parameters" if self._format == "openai" else "input_schema"
        rules: Any = self._head().get(key)
        if not isinstance(rules, dict):
            raise ValueError(f"not a tool schema in the {self._format} format: it has no object {key!r}")
        return cast("dict[str, Any]", rules)

    def _parameters(self) -> dict[str, dict[str, Any]]:
        properties: Any = self._rules().get("properties")
        return cast("dict[str, dict[str, Any]]", properties) if isinstance(properties, dict) else {}


class ToolSchemaCollection:
    """An ordered collection of tool schemas. `to_list()` uses the provider's format."""

    def __init__(self, schemas: list[ToolSchema]) -> None:
        self._schemas = schemas

    def get_by_name(self, name: str) -> ToolSchema | None:
        return next((schema for schema in self._schemas if schema.get_name() == name), None)

    def set_description(self, name: str, description: str) -> Self:
        """Replace a tool's description. Raises KeyError for an unknown name."""
        self._required(name).set_description(description)
        return self

    def set_name(self, old_name: str, new_name: str) -> Self:
        """Rename a tool. Raises KeyError for an unknown name."""
        self._required(old_name).set_name(new_name)
        return self

    def names(self) -> list[str]:
        return [schema.get_name() for schema in self._schemas]

    def to_list(self) -> list[dict[str, Any]]:
        """Return copies of the schemas as plain data."""
        return [schema.to_dict() for schema in self._schemas]

    def copy(self) -> ToolSchemaCollection:
        return ToolSchemaCollection([schema.copy() for schema in self._schemas])

    def __iter__(self) -> Iterator[ToolSchema]:
        return iter(self._schemas)

    def __len__(self) -> int:
        return len(self._schemas)

    def __getitem__(self, index: int) -> ToolSchema:
        return self._schemas[index]

    def __repr__(self) -> str:
        return f"ToolSchemaCollection({self.names()!r})"

    def _required(self, name: str) -> ToolSchema:
        schema = self.get_by_name(name)
        if schema is None:
            raise KeyError(f"there is no tool {name!r}; use one of: {', '.join(self.names())}")
        return schema
