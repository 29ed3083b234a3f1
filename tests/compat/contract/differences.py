"""Compare an OpenAPI document with the contract.

`differences(document)` returns one line per difference, ending with the document's value if it has
one. Additions such as operations and optional fields are allowed. Removals and stricter requests
are differences.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_memory.feature_list import FEATURES

CONTRACT: dict[str, Any] = json.loads((Path(__file__).parent / "contract.json").read_text("utf-8"))

NARROWING = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
)
"""JSON Schema keywords that reject values of a type. The comparison handles `enum` and `type` separately."""

RENAMED = {"Body_forget_endpoint_v1_long_term_memory_forget_post": "ForgetRequest"}
"""Schemas that the framework named. Names of schemas are not part of the wire format."""

OWNERS = {
    "/v1/working-memory": "sessions",
    "/v1/long-term-memory": "memories",
    "/v1/memory/prompt": "recall",
    "/v1/summary-views": "views",
    "/v1/tasks": "views",
}
"""Features that serve the contract's operations, by path prefix. The comparison skips features that the server does not have."""

Schema = Mapping[str, Any]


def owner_of(path: str) -> str | None:
    """Return the feature that serves an operation, or None if no feature does."""
    return next((feature for beginning, feature in OWNERS.items() if path.startswith(beginning)), None)


def operations(*, left_out: bool = False) -> list[Schema]:
    """Return the contract's operations for registered features, or for unregistered ones."""
    announced = {None, *(feature.name for feature in FEATURES)}
    return [one for one in CONTRACT["operations"] if (owner_of(one["path"]) not in announced) == left_out]


def is_left_out(line: str) -> bool:
    """True if a difference affects only omitted operations."""
    place = line.partition(": ")[0]
    schemas = _named(operations(left_out=True)) - _named(operations())
    return place in {_place(one) for one in operations(left_out=True)} or place.partition(".")[0] in schemas


def methods_left_out() -> set[str]:
    """Return the archived Python client's methods that use only omitted operations."""
    missing = {_place(one) for one in operations(left_out=True)}
    endpoints = {name: set(method["endpoints"]) for name, method in CONTRACT["python_client_methods"].items()}
    return {name for name, asked in endpoints.items() if asked and asked <= missing}


def _place(operation: Schema) -> str:
    return f"{operation['method']} {operation['path']}"


def _named(value: Any) -> set[str]:
    """Return the schemas that part of the contract refers to, directly or indirectly."""
    names, waiting = set[str](), [value]
    while waiting:
        for name in set(re.findall(r"\w+", json.dumps(waiting.pop()))) & CONTRACT["schemas"].keys() - names:
            names.add(name)
            waiting.append(CONTRACT["schemas"][name])
    return names


def differences(document: Schema) -> set[str]:
    """Return all differences between an OpenAPI document and the contract.

    The lines are `METHOD path: what`, `METHOD path: parameter: what`, `Schema: what` and
    `Schema.field: what`.
    """
    return set(_differences(document))


def _differences(document: Schema) -> Iterator[str]:
    for wanted in operations():
        place = _place(wanted)
        found = document["paths"].get(wanted["path"], {}).get(wanted["method"].lower())
        if found is None:
            yield f"{place}: missing"
        else:
            yield from _of_operation(place, wanted, found)
            yield from _compared(f"{place}: auth", wanted["auth"], _auth_of(document, found))
    schemas = document["components"]["schemas"]
    sent = _reachable_from_requests(document)
    for name, wanted in CONTRACT["schemas"].items():
        if is_left_out(name):
            continue
        found = schemas.get(RENAMED.get(name, name))
        if found is None:
            yield f"{name}: missing"
        elif wanted["kind"] == "enum":
            yield from _compared(f"{name}: enum", sorted(wanted["values"]), sorted(found.get("enum", ())))
        else:
            yield from _of_object(name, wanted, found, name in sent)


def _auth_of(document: Schema, operation: Schema) -> str:
    """Return `bearer` for the contract's credentials, `none` for no credentials, or `other`."""
    offered = [document["components"]["securitySchemes"][name] for one in operation.get("security", ()) for name in one]
    if not offered:
        return "none"
    kinds = {f"{one['type']} {one['scheme']}" for one in offered if "scheme" in one}
    return "bearer" if CONTRACT["auth"]["scheme"] in kinds else "other"


def _of_operation(place: str, wanted: Schema, found: Schema) -> Iterator[str]:
    yield from _compared(f"{place}: operation id", wanted["operation_id"], found.get("operationId"))
    parameters = {(one["name"], one["in"]): one for one in found.get("parameters", ())}
    for location in ("path", "query"):
        for name, rule in wanted[f"{location}_params"].items():
            parameter = parameters.pop((name, location), None)
            if parameter is None:
                yield f"{place}: {name}: missing in the {location}"
            else:
                yield from _of_value(f"{place}: {name}", rule, parameter["schema"], parameter.get("required", False), sent=True)
    for name, location in parameters:
        if parameters[name, location].get("required"):
            yield f"{place}: {name}: required and not known in the {location}"
    yield from _of_body(place, wanted["request_body"], found.get("requestBody"))
    success = found["responses"].get(str(wanted["success"]["status"]), {})
    if wanted["success"]["schema"] == "any":
        described = _answers_of(wanted["success"])
        yield from _compared(f"{place}: success", described, "described" if success.get("content") else None)
    else:
        yield from _compared(f"{place}: success", wanted["success"]["schema"], _content_type_of(success))
    for error in wanted["documented_errors"]:
        refused = found["responses"].get(str(error["status"]), {})
        yield from _compared(f"{place}: {error['status']}", error["schema"], _content_type_of(refused))
    for status in wanted["undocumented_error_codes"]:
        if str(status) not in found["responses"]:
            yield f"{place}: {status}: not documented"
    for header in wanted["response_headers"]:
        if header not in success.get("headers", {}):
            yield f"{place}: header {header}: not documented"


def _answers_of(success: Schema) -> str | None:
    return "described" if success["observed_fields"] else None


def _of_body(place: str, wanted: Schema | None, found: Schema | None) -> Iterator[str]:
    if wanted is None or found is None:
        if found is not None and found.get("required"):
            yield f"{place}: body: required and not known"
        elif wanted is not None:
            yield f"{place}: body: missing"
        return
    yield from _compared(f"{place}: body", RENAMED.get(wanted["schema"], wanted["schema"]), _content_type_of(found, wanted["content_type"]))
    if found.get("required", False) and not wanted["required"]:
        yield f"{place}: body: required"


def _of_object(name: str, wanted: Schema, found: Schema, sent: bool) -> Iterator[str]:
    extra = found.get("additionalProperties")
    ours = {None: "ignored", True: "kept", False: "refused"}[extra]
    yield from _compared(f"{name}: unknown fields", wanted["unknown_fields"], ours)
    required = found.get("required", ())
    properties = found.get("properties", {})
    for field, rule in wanted["fields"].items():
        if field not in properties:
            yield f"{name}.{field}: missing"
        else:
            yield from _of_value(f"{name}.{field}", rule, properties[field], field in required, sent)
    for field in properties.keys() - wanted["fields"].keys():
        if sent and field in required:
            yield f"{name}.{field}: required and not known"


def _of_value(place: str, wanted: Schema, found: Schema, required: bool, sent: bool) -> Iterator[str]:
    """Compare a parameter or field. A type that callers send must not become stricter."""
    yield from _compared(f"{place}: required", wanted["required"], required)
    if "default_generated" in wanted or "default" not in wanted:
        if "default" in found and not _made_up(wanted.get("default_generated"), found["default"]):
            yield f"{place}: default {json.dumps(found['default'])}"
    elif "default" in found or wanted["default"] is not None:
        yield from _compared(f"{place}: default", wanted["default"], found.get("default"))
    if place.startswith("ValidationError."):
        return  # built into every version of the framework
    flat = _flat(found)
    yield from _compared(f"{place}: nullable", wanted["nullable"], _is_nullable(found))
    yield from _compared(f"{place}: type", wanted["type"], type_of(found))
    allowed = _enum_of(found)
    if not (sent and allowed is None):  # a caller may then send any value
        yield from _compared(f"{place}: enum", wanted.get("enum"), allowed)
    for keyword in NARROWING:
        ours = flat.get(keyword)
        if ours != wanted.get(keyword) and (sent or keyword in wanted):
            yield f"{place}: {keyword} {_number(ours)}"
    if type_of(found).startswith("array") and sent:
        for keyword in NARROWING:
            ours = _flat(flat.get("items", {})).get(keyword)
            if ours is not None:
                yield f"{place}: items: {keyword} {_number(ours)}"


def _made_up(generated: Any, ours: Any) -> bool:
    """True if a default equals the value that the contract says is generated."""
    return generated not in ("ulid", "now_utc", None) and generated == ours


def _compared(place: str, wanted: Any, found: Any) -> Iterator[str]:
    if wanted != found:
        yield f"{place} {found if isinstance(found, str) else json.dumps(found)}"


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _reachable_from_requests(document: Schema) -> set[str]:
    """Return the contract's names for the schemas that callers send."""
    schemas, names = document["components"]["schemas"], set[str]()
    bodies = (one.get("requestBody", {}) for methods in document["paths"].values() for one in methods.values())
    waiting = [name for body in bodies for name in _references(body)]
    while waiting:
        if (name := waiting.pop()) not in names:
            names.add(name)
            waiting.extend(_references(schemas[name]))
    back = {ours: theirs for theirs, ours in RENAMED.items()}
    return {back.get(name, name) for name in names}


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rsplit("/", 1)[1]
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def _content_type_of(holder: Schema, media: str = "application/json") -> str | None:
    content = holder.get("content", {}).get(media)
    return type_of(content["schema"]) if content else None


def type_of(schema: Schema) -> str:
    """Convert a JSON schema to the contract's notation, without a top-level null."""
    if "$ref" in schema:
        return schema["$ref"].rsplit("/", 1)[1]
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return "|".join(type_of(part) for part in schema[union] if part.get("type") != "null")
    if schema.get("const") is not None or "enum" in schema:
        return "string"
    match schema.get("type"):
        case "array":
            return f"array<{type_of(schema.get('items', {}))}>"
        case "object":
            values = schema.get("additionalProperties", True)
            return "map<any>" if values is True else f"map<{_inner_type(values)}>"
        case "string" if "format" in schema:
            return f"string<{schema['format']}>"
        case None:
            return "any"
        case kind:
            return str(kind)


def _inner_type(schema: Schema) -> str:
    return type_of(schema) + ("|null" if _is_nullable(schema) and "anyOf" in schema else "")


def _is_nullable(schema: Schema) -> bool:
    return schema.get("type") == "null" or any(part.get("type") == "null" for part in schema.get("anyOf", ()))


def _flat(schema: Schema) -> Schema:
    """Return the schema merged with the keywords of its only non-null branch."""
    branches = [part for part in schema.get("anyOf", ()) if part.get("type") != "null"]
    return {**schema, **branches[0]} if len(branches) == 1 else schema


def _enum_of(schema: Schema) -> list[Any] | None:
    schema = _flat(schema)
    return [schema["const"]] if "const" in schema else schema.get("enum")
