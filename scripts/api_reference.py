"""Generate the HTTP API reference as Markdown from the application's OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app

Schema = dict[str, Any]
_SUCCESS = re.compile(r"2\d\d")
_SHOWN = 90
"""Cut enumerations, defaults and examples after this many characters."""


def reference() -> str:
    document = create_app(load_settings()).openapi()
    return "\n".join(_page(document))


def _page(document: Schema) -> Iterator[str]:
    yield "# API reference\n"
    yield (
        f"For developers who call the HTTP API directly. Generated from the OpenAPI document of version {document['info']['version']}; a "
        "running server has it at `/openapi.json` and as a page at `/docs`. Every operation can return 401 and 403 if the server "
        "[asks for credentials](running/access.md), 422 with the name of an invalid field, and 503 with `Retry-After` if Redis is "
        "unavailable.\n"
    )
    groups: dict[str, list[tuple[str, str, Schema]]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            groups.setdefault((operation.get("tags") or ["server"])[0], []).append((method, path, operation))
    for group, operations in groups.items():
        yield f"## {group.capitalize()}\n"
        for method, path, operation in operations:
            yield from _operation(method, path, operation)
    yield "## Bodies\n"
    for name, schema in sorted(document["components"]["schemas"].items()):
        yield from _body(name, schema)


def _operation(method: str, path: str, operation: Schema) -> Iterator[str]:
    yield f"### `{method.upper()} {path}`\n"
    yield f"{_prose(operation.get('description') or operation.get('summary', ''))}\n"
    if parameters := operation.get("parameters"):
        yield "| parameter | in | type | meaning |\n|---|---|---|---|"
        for parameter in parameters:
            must = ", required" if parameter.get("required") and parameter["in"] != "path" else ""
            kind = _type(parameter["schema"])
            yield f"| `{parameter['name']}` | {parameter['in']}{must} | {kind} | {_cell(parameter.get('description', ''))} |"
        yield ""
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"Body (`{kind}`): {_type(content.get('schema', {}))}\n"
    answers: list[str] = []
    for status, answer in operation["responses"].items():
        if _SUCCESS.fullmatch(status):
            kinds = [_type(content["schema"]) for content in answer.get("content", {}).values() if content.get("schema")]
            answers.append(f"**{status}** {' or '.join(kinds) or _cell(answer.get('description', ''))}")
        elif status not in ("401", "403", "422", "503"):
            answers.append(f"**{status}** {_cell(answer.get('description', ''))}")
    yield f"Answers: {'; '.join(answers)}\n"


def _body(name: str, schema: Schema) -> Iterator[str]:
    yield f"### {name}\n"
    if description := schema.get("description"):
        yield f"{_prose(description)}\n"
    if "enum" in schema:
        yield f"{_values(schema['enum'])}\n"
    if fields := schema.get("properties"):
        required = schema.get("required", [])
        yield "| field | type | meaning |\n|---|---|---|"
        for field, inner in fields.items():
            meaning = _cell(inner.get("description", ""))
            default = "" if inner.get("default") in (None, "", [], {}) else f"default `{_cut(inner['default'])}`"
            notes = "; ".join(note for note in ("required" if field in required else "", default) if note)
            yield f"| `{field}` | {_type(inner)} | {meaning}{f' ({notes})' if notes and meaning else notes} |"
        yield ""


def _type(schema: Schema) -> str:
    """Describe a schema's type in words, with links to other schemas."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[several]))
    if "allOf" in schema:
        return " and ".join(_type(one) for one in schema["allOf"])
    if "enum" in schema or "const" in schema:
        return _values(schema.get("enum", [schema.get("const")]))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    return schema.get("format", kind) if kind == "string" else kind


def _values(values: list[Any]) -> str:
    return ", ".join(f"`{_cut(value)}`" for value in values)


def _cut(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _cell(text: str) -> str:
    return " ".join(_prose(text).split()).replace("|", "\\|")


def _prose(text: str) -> str:
    """Escape HTML tags in text, so that Markdown does not render them."""
    return re.sub(r"<(?=[A-Za-z/])(?![^`\n]*`)", "&lt;", text).strip()


if __name__ == "__main__":
    print(reference())
