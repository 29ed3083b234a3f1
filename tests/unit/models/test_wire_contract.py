"""The wire models against the published contract: every schema, field, type, default and bound, from `tests/contract/contract.json`."""

from __future__ import annotations

import enum
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from ulid import ULID

from agent_memory_client import models

CONTRACT = json.loads((Path(__file__).parents[2] / "contract" / "contract.json").read_text())
SCHEMAS: dict[str, dict[str, Any]] = CONTRACT["schemas"]
OBJECTS = {name: schema for name, schema in SCHEMAS.items() if schema["kind"] == "object"}
ENUMS = {name: schema for name, schema in SCHEMAS.items() if schema["kind"] == "enum"}

RENAMED = {"Body_forget_endpoint_v1_long_term_memory_forget_post": "ForgetRequest"}

MODEL_NAME = "any model name is accepted, not a closed list"
OWN_FIELD = "a filter filters its own field: another `field` would redirect it to other data"
KINDS = "a kind of memory that does not exist is refused, not a server error"

DEVIATIONS: dict[tuple[str, str], str] = {
    ("WorkingMemoryRequest", "model_name"): MODEL_NAME,
    **{
        (name, "field"): OWN_FIELD
        for name in (
            "CreatedAt",
            "Entities",
            "EventDate",
            "ExtractionStrategy",
            "LastAccessed",
            "MemoryType",
            "Namespace",
            "SessionId",
            "Topics",
            "UserId",
        )
    },
    ("MemoryType", "enum_class"): "only null: another class would redirect the filter",
    **{("MemoryType", name): KINDS for name in ("eq", "ne", "any", "all")},
    **{(name, "inclusive"): "an unknown word is refused, not read as 'both'" for name in ("CreatedAt", "EventDate", "LastAccessed")},
}
"""What differs on purpose, with the reason. Everything else must match."""

ADDED_ENUM_VALUES = {"MemoryTypeEnum": {"procedural"}}


def model_of(name: str) -> type[BaseModel]:
    return getattr(models, RENAMED.get(name, name))


def type_of(schema: dict[str, Any]) -> str:
    """A JSON schema in the contract's notation, without null at the top."""
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
            return "map<any>" if values is True else f"map<{inner_type(values)}>"
        case "string" if "format" in schema:
            return f"string<{schema['format']}>"
        case None:
            return "any"
        case kind:
            return str(kind)


def inner_type(schema: dict[str, Any]) -> str:
    nullable = any(part.get("type") == "null" for part in schema.get("anyOf", ()))
    return type_of(schema) + ("|null" if nullable else "")


def is_nullable(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "null" or any(part.get("type") == "null" for part in schema.get("anyOf", ()))


def flat(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with the keywords of its only branch that is not null."""
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
def test_field_is_as_in_the_contract(name: str, field: str, wanted: dict[str, Any]) -> None:
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
    assert enum_of(found) == wanted.get("enum")
    for ours, theirs in (("minimum", "minimum"), ("maximum", "maximum"), ("minLength", "minLength")):
        if theirs in wanted:
            assert flat(found).get(ours) == wanted[theirs]


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
def test_enum_has_the_values_of_the_contract(name: str) -> None:
    kind: type[enum.Enum] = getattr(models, name)
    values = {str(member.value) for member in kind}
    assert values == set(ENUMS[name]["values"]) | ADDED_ENUM_VALUES.get(name, set())


@pytest.mark.parametrize("name", OBJECTS)
def test_unknown_fields_are_treated_as_in_the_contract(name: str) -> None:
    extra = model_of(name).model_config.get("extra", "ignore")
    if "filter_family" in OBJECTS[name]:
        assert extra == "forbid", "unknown keys in a filter must not widen what it finds"
    else:
        assert extra == {"ignored": "ignore", "kept": "allow"}[OBJECTS[name]["unknown_fields"]]


def test_every_deviation_is_one() -> None:
    for name, field in DEVIATIONS:
        wanted = OBJECTS[name]["fields"][field]
        found = model_of(name).model_json_schema()["properties"][field]
        same = type_of(found) == wanted["type"] and enum_of(found) == wanted.get("enum") and is_nullable(found) == wanted["nullable"]
        assert not same, f"{name}.{field} matches the contract: remove it from the list"
