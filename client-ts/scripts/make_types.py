"""Writes `client-ts/src/types.ts`: the bodies and operations of the HTTP API as TypeScript, made of the application's own OpenAPI document.

`scripts/node_packages.sh install` runs it before the client is built or tested; the file is not committed.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from agent_memory.foundation.core.settings import load_settings  # noqa: E402
from agent_memory.interfaces.http.app import create_app  # noqa: E402

Schema = dict[str, Any]
TARGET = ROOT / "client-ts" / "src" / "types.ts"
_HEAD = "// Made by client-ts/scripts/make_types.py of the server's OpenAPI document. Do not edit.\n"
_SCALARS = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_WIDTH = 130
_NAME = re.compile(r"[A-Za-z_]\w*")


def types() -> str:
    """The file: one type for each schema, then `Operations`, whose keys are method and path."""
    document = create_app(load_settings()).openapi()
    parts = [_HEAD, *(_declaration(name, schema) for name, schema in sorted(document["components"]["schemas"].items()))]
    lines = ["/** Every operation: what it takes in its path, query and body, and what it answers. */", "export interface Operations {"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            lines += _operation(f"{method.upper()} {path}", operation)
    return "\n".join([*parts, *lines, "}", ""])


def _declaration(name: str, schema: Schema) -> str:
    head = f"{_comment(schema, '')}export "
    if "properties" in schema:
        return head + f"interface {name} {_object(schema, '')}\n"
    return head + f"type {name} = {_type(schema, '')};\n"


def _operation(name: str, operation: Schema) -> Iterator[str]:
    yield from _comment({"description": operation.get("description") or operation.get("summary", "")}, "  ").splitlines()
    yield f"  {json.dumps(name)}: {{"
    for place in ("path", "query"):
        parameters = [parameter for parameter in operation.get("parameters", []) if parameter["in"] == place]
        properties = {parameter["name"]: {**parameter["schema"], "description": parameter.get("description")} for parameter in parameters}
        required = [parameter["name"] for parameter in parameters if parameter.get("required")]
        yield f"    {place}: {_object({'properties': properties, 'required': required}, '    ') if parameters else '{}'};"
    yield f"    body: {_content(operation.get('requestBody'))};"
    success = next((answer for status, answer in operation["responses"].items() if status.startswith("2")), None)
    yield f"    answer: {_content(success)};"
    yield "  };"


def _content(holder: Schema | None) -> str:
    """The type of a body or an answer; what is not JSON is text, and no body is `undefined`."""
    content = (holder or {}).get("content", {})
    if "application/json" in content:
        return _type(content["application/json"].get("schema", {}), "    ")
    return "string" if content else "undefined"


def _object(schema: Schema, indent: str) -> str:
    inner = f"{indent}  "
    lines: list[str] = []
    for name, field in schema.get("properties", {}).items():
        optional = "" if name in schema.get("required", ()) else "?"
        key = name if _NAME.fullmatch(name) else json.dumps(name)
        lines.append(f"{_comment(field, inner)}{inner}{key}{optional}: {_type(field, inner)};\n")
    if schema.get("additionalProperties"):
        # Fields of the caller's own stand beside those above, so this must take in what those are.
        lines.append(f"{inner}[name: string]: unknown;\n")
    return "{\n" + "".join(lines) + f"{indent}}}"


def _type(schema: Schema | bool, indent: str) -> str:
    if isinstance(schema, bool) or not schema:
        return "unknown"
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    for alternatives in ("anyOf", "oneOf"):
        if alternatives in schema:
            return " | ".join(dict.fromkeys(_type(part, indent) for part in schema[alternatives]))
    kind = schema.get("type")
    if kind == "array":
        items = _type(schema.get("items", {}), indent)
        return f"({items})[]" if " | " in items else f"{items}[]"
    if kind == "object":
        return _object(schema, indent) if "properties" in schema else _map(schema, indent)
    return _SCALARS.get(str(kind), "unknown")


def _map(schema: Schema, indent: str) -> str:
    values = [schema.get("additionalProperties"), *schema.get("patternProperties", {}).values()]
    names = list(dict.fromkeys(_type(value, indent) for value in values if value))
    return f"{{ [name: string]: {' | '.join(names) or 'unknown'} }}"


def _comment(schema: Schema, indent: str) -> str:
    """The description as a comment, ready to stand before what it describes; empty without one."""
    text = (schema.get("description") or "").replace("*/", "* /").strip()
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line, _WIDTH - len(indent), break_long_words=False) or [""]]
    if len(lines) <= 1:
        return "".join(f"{indent}/** {line} */\n" for line in lines)
    body = "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines)
    return f"{indent}/**\n{body}{indent} */\n"


if __name__ == "__main__":
    TARGET.write_text(types(), "utf-8")
