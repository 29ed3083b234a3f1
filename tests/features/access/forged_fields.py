"""Find every field in the OpenAPI document and tool schemas that can specify an id or owner.

New fields are included automatically.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agent_memory.interfaces.mcp.tools import TOOLS
from tests.features.access.hostile import CASES, Case, Ids
from tests.features.access.tool_cases import TOOL_CASES

Path = tuple[str | int, ...]
_NAMES = re.compile(r"(^|_)(ids?|users?|namespaces?|agents?|session|supersedes|superseded_by|extracted_from|slot|evidence|metadata)$")
_VALUES: dict[str, Any] = {
    "user_id": "ana",
    "namespace": "work",
    "session_id": "shared",
    "agent_id": "coach",
    "slot": "x1",
    "users": ["ana"],
    "namespaces": ["work"],
    "agents": ["coach"],
    "metadata": {"user_id": "ana", "namespace": "work"},
}
_LEAST: dict[str, Any] = {"array": [], "boolean": True, "integer": 1, "number": 1.0, "object": {}}


class SchemaFields:
    """Finds the fields in a schema that can specify an id or owner."""

    def __init__(self, schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> None:
        self._schema = schema
        self._schemas = schemas
        self.paths: dict[Path, Any] = dict(self._walk(schema, (), frozenset()))

    def _resolved(self, schema: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
        """Yield each alternative in a schema, with its name."""
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            yield self._schemas[name], name
            return
        joined = [part for word in ("anyOf", "oneOf", "allOf") for part in schema.get(word, ())]
        for part in joined:
            yield from self._resolved(part)
        if not joined:
            yield schema, ""

    def _walk(self, schema: Mapping[str, Any], path: Path, seen: frozenset[str]) -> Iterator[tuple[Path, Any]]:
        for part, name in self._resolved(schema):
            if name and name in seen:
                continue
            below = seen | {name}
            if isinstance(part.get("items"), dict):
                yield from self._walk(part["items"], (*path, 0), below)
            for field, inner in part.get("properties", {}).items():
                if _NAMES.search(field):
                    yield (*path, field), inner
                yield from self._walk(inner, (*path, field), below)

    def least(self, schema: Mapping[str, Any] | None = None) -> Any:
        """Return a minimal value for a schema."""
        part, _ = next(self._resolved(self._schema if schema is None else schema))
        if "enum" in part:
            return part["enum"][0]
        if "properties" in part:
            return {name: self.least(part["properties"][name]) for name in part.get("required", ())}
        return copy.copy(_LEAST.get(part.get("type", ""), "x"))

    def value(self, path: Path, ids: Ids) -> Any:
        known = _VALUES.get(str(path[-1]), ["m-shared", "x1", ids.memory, ids.session][ids.number % 4])
        parts = [part for part, _ in self._resolved(self.paths[path])]
        if isinstance(known, list) or not {part.get("type") for part in parts} <= {"array", "null"}:
            return known
        items = next(part for part in parts if part.get("type") == "array").get("items", {})
        texts = {part.get("type") for part, _ in self._resolved(items)} <= {"string", "null", None}
        return [known] if texts else [self.least(items)]

    def put(self, body: Any, path: Path, value: Any, schema: Mapping[str, Any] | None = None) -> Any:
        """Return a copy of a body with a value set at a path. Create missing parents."""
        if not path:
            return value
        step, rest = path[0], path[1:]
        for part, _ in self._resolved(self._schema if schema is None else schema):
            if isinstance(step, int) and isinstance(part.get("items"), dict):
                first = body[0] if isinstance(body, list) and body else self.least(part["items"])
                return [self.put(first, rest, value, part["items"])]
            if step in part.get("properties", {}):
                whole = body if isinstance(body, dict) else self.least(part)
                return whole | {step: self.put(whole.get(step), rest, value, part["properties"][step])}
        raise AssertionError(f"no schema for {path}")


class Forgeries:
    """Yields calls to all operations and tools, with one forged field each."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._fields: dict[str, SchemaFields] = {}
        self._parameters: dict[str, list[str]] = {}
        for methods in document["paths"].values():
            for operation in methods.values():
                name = operation["operationId"]
                kinds = operation.get("requestBody", {}).get("content", {})
                self._fields[name] = SchemaFields(kinds.get("application/json", {}).get("schema", {}), document["components"]["schemas"])
                given = [parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"]
                self._parameters[name] = [parameter for parameter in given if _NAMES.search(parameter)]
        for name, tool in TOOLS.items():
            schema = tool.takes.model_json_schema()
            self._fields[name] = SchemaFields(schema, schema.get("$defs", {}))

    def cases(self, name: str, ids: Ids) -> list[Case]:
        """Forge each field and parameter, in the operation's first case and in a minimal body."""
        if name not in self._fields:
            return []  # MCP's resources and prompts have no schema
        if name in TOOL_CASES:
            method, path, params, call = TOOL_CASES[name](ids)[0]
            bodies = self._bodies(name, call["params"]["arguments"], ids)
            return [(method, path, params, call | {"params": {"name": name, "arguments": body}}) for body in bodies]
        method, path, params, body = CASES[name](ids)[0]
        forged: list[Case] = [(method, path, params, body) for body in self._bodies(name, body, ids)]
        return forged + [(method, path, params | {one: _VALUES.get(one, "ana")}, body) for one in self._parameters[name]]

    def _bodies(self, name: str, body: Any, ids: Ids) -> Iterator[Any]:
        fields = self._fields[name]
        for path in fields.paths:
            for base in (body, fields.least()):
                yield fields.put(base, path, fields.value(path, ids))
