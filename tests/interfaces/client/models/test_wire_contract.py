"""Compare the wire models with the published `contract.json`."""

from __future__ import annotations

import enum
import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from ulid import ULID

from agent_memory_client import models
from tests.compat.contract.differences import CONTRACT, RENAMED, type_of
from tests.compat.contract.exceptions import EXCEPTIONS

SCHEMAS: dict[str, dict[str, Any]] = CONTRACT["schemas"]
OBJECTS = {name: schema for name, schema in SCHEMAS.items() if schema["kind"] == "object"}
ENUMS = {name: schema for name, schema in SCHEMAS.items() if schema["kind"] == "enum"}

DEVIATIONS: set[tuple[str, str]] = {
    tuple(line.partition(":")[0].split("."))  # pyright: ignore[reportAssignmentType]
    for line in EXCEPTIONS
    if re.match(r"\w+\.\w+: (type|enum|nullable) ", line)
}
"""Fields whose type differs intentionally."""


def model_of(name: str) -> type[BaseModel]:
    return getattr(models, RENAMED.get(name, name))


def is_nullable(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "null" or any(part.get("type") == "null" for part in schema.get("anyOf", ()))


def flat(schema: dict[str, Any]) -> dict[str, Any]:
    """Merge a schema with its only non-null branch."""
    branches = [part for part in schema.get("anyOf", ()) if part.get("type") != "null"]
    return {**schema, **branches[0]} if len(branches) == 1 else schema


def enum_of(schema: dict[str, Any]) -> list[Any] | None:
    schema = flat(schema)
    return [schema["const"]] if "const" in schema else schema.get("enum")


FIELDS = [
    pytest.param(name, field, wanted, id=f"{name}.{field}")
    for name, schema in OBJECTS.items()
    for field, wanted in schema["fields"].items()
]


@pytest.mark.parametrize(("name", "field", "wanted"), FIELDS)
def test_field_matches_the_contract(name: str, field: str, wanted: dict[str, Any]) -> None:
    model = model_of(name)
    schema = model.model_json_schema()
    found = schema["properties"].get(field)
    assert found is not None, f"{name} has no field {field}"
    assert (field in schema.get("required", ())) == wanted["required"]
    attribute = next(key for key, info in model.model_fields.items() if field in (key, info.alias))
    info = model.model_fields[attribute]
    if "default" in wanted:
        assert to_jsonable_python(info.default) == wanted["default"]
    if "default_generated" in wanted:
        check_generated(info.get_default(call_default_factory=True, validated_data={}), wanted["default_generated"])
    if (name, field) in DEVIATIONS:
        return
    if name != "ValidationError":
        assert is_nullable(found) == wanted["nullable"]
    assert type_of(found) == wanted["type"]
    assert enum_of(found) == wanted.get("enum") or (field == "model_name" and enum_of(found) is None), "any model name is accepted"
    for keyword in ("minimum", "maximum", "minLength"):
        if keyword in wanted:
            assert flat(found).get(keyword) == wanted[keyword]


def check_generated(value: Any, wanted: Any) -> None:
    match wanted:
        case "ulid":
            assert str(ULID.from_str(value)) == value
        case "now_utc":
            assert isinstance(value, datetime)
            assert value.tzinfo is UTC
        case _:
            assert to_jsonable_python(value) == wanted


@pytest.mark.parametrize("name", ENUMS)
def test_enum_values_match_the_contract(name: str) -> None:
    kind: type[enum.Enum] = getattr(models, name)
    values = sorted(str(member.value) for member in kind)
    assert values == sorted(ENUMS[name]["values"]) or f"{name}: enum {json.dumps(values)}" in EXCEPTIONS


@pytest.mark.parametrize("name", OBJECTS)
def test_unknown_field_handling_matches_the_contract(name: str) -> None:
    extra = model_of(name).model_config.get("extra", "ignore")
    said = {"ignore": "ignored", "allow": "kept", "forbid": "refused"}[extra]
    assert said == OBJECTS[name]["unknown_fields"] or f"{name}: unknown fields {said}" in EXCEPTIONS
