"""Ignore unknown fields, but reject names that resemble a field in `NARROWING`.

Otherwise, a misspelled `user_id` would make a request apply to all users' memories.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, cast
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError, SchemaValidator, core_schema

SCOPE_FIELDS = frozenset({"user_id", "namespace", "session_id", "agent_id"})
NARROWING = SCOPE_FIELDS | {
    *("session", "topics", "entities", "created_at", "last_accessed", "event_date", "memory_type", "extraction_strategy"),
    *("metadata", "slot", "category", "source_class", "written_by", "filter", "min_trust", "min_relevance"),
}
"""Fields that narrow a search or a deletion to fewer memories."""
SENT_BACK = frozenset({"session_id"})
"""Fields that clients repeat in a session's body. They are silently ignored."""

_NARROWS_NOTHING = "the operation's own parameters to say what to delete, because this field would not narrow it"
MOST_NAMED = 1000
_MOST_SHOWN = 20
_LONGEST = 64


class Unknown(NamedTuple):
    """The path of an unknown field, and the known field that it resembles (if any)."""

    path: Sequence[str | int]
    suggestion: str | None = None

    @property
    def why(self) -> str:
        if self.suggestion is None:
            return "is not a known field (STRICT_FIELDS): remove it, or correct its name"
        return f"is not a known field and would be ignored: use {self.suggestion}"


class UnknownFields(Exception):
    """The request contains unknown fields that are not allowed.

    `error` contains any other validation errors.
    """

    def __init__(self, fields: Sequence[Unknown], error: ValidationError | None = None) -> None:
        super().__init__(f"{len(fields)} unknown fields")
        self.fields = fields
        self.error = error


class FieldCheck:
    """Validates values of a type and finds their unknown fields."""

    def __init__(self, hint: Any, change: Callable[[CoreSchema], CoreSchema] | None = None) -> None:
        self._hint = hint
        self._change = change

    @cached_property
    def _schema(self) -> CoreSchema:
        schema = TypeAdapter(self._hint).core_schema
        return schema if self._change is None else self._change(schema)

    @cached_property
    def _plain(self) -> SchemaValidator:
        if self._change is not None:
            return SchemaValidator(self._schema, _use_prebuilt=False)
        validator = TypeAdapter(self._hint).validator
        assert isinstance(validator, SchemaValidator)
        return validator

    @cached_property
    def _strict(self) -> SchemaValidator:
        return SchemaValidator(_changed(self._schema, _forbidding), _use_prebuilt=False)

    @cached_property
    def _naming(self) -> tuple[SchemaValidator, Collection[str]]:
        names: set[str] = set()
        schema = _changed(self._schema, lambda node: _naming(node, names))
        return SchemaValidator(schema, _use_prebuilt=False), names

    @cached_property
    def scope_fields(self) -> Collection[str]:
        """The scope fields that can appear in a value, at any depth."""
        field_names: set[str] = set()

        def collect(model: dict[str, Any]) -> None:
            field_names.update(SCOPE_FIELDS & ((_fields_of(model) or {}).get("fields") or {}).keys())

        _changed(self._schema, collect)
        return field_names

    def read(self, validate: Callable[[SchemaValidator], Any], *, strict: bool) -> tuple[Any, Sequence[Unknown]]:
        """Return the validated value and any ignored fields.

        If `strict` is true, unknown fields are errors. Raises ValidationError or UnknownFields.
        """
        try:
            return validate(self._strict), ()
        except ValidationError as error:
            many = error.error_count() > MOST_NAMED
            if not many and all(problem["type"] != "extra_forbidden" for problem in _errors(error)):
                raise
            unknown = [Unknown((f"{error.error_count()} fields",))] if many else self._unknown(validate)
        refused = [field for field in unknown if strict or field.suggestion is not None]
        try:
            value = validate(self._plain)
        except ValidationError as error:
            if refused:
                raise UnknownFields(refused, error) from None
            raise
        if refused:
            raise UnknownFields(refused)
        return value, unknown

    def _unknown(self, validate: Callable[[SchemaValidator], Any]) -> Sequence[Unknown]:
        validator, models = self._naming
        try:
            validate(validator)
        except ValidationError as error:
            return [
                Unknown([part for part in problem["loc"] if part not in models], problem.get("ctx", {}).get("meant") or None)
                for problem in _errors(error)
                if problem["type"] == "unknown_field"
            ]
        return ()


def _errors(error: ValidationError) -> Sequence[Any]:
    return error.errors(include_url=False, include_input=False)


def _changed(node: Any, change: Callable[[dict[str, Any]], None]) -> Any:
    if isinstance(node, (list, tuple)):
        parts = [_changed(part, change) for part in cast("Sequence[Any]", node)]
        return tuple(parts) if isinstance(node, tuple) else parts
    if not isinstance(node, dict):
        return node
    copy = {key: value if key == "metadata" else _changed(value, change) for key, value in cast("dict[str, Any]", node).items()}
    if copy.get("type") == "model":
        change(copy)
    return copy


def _fields_of(model: dict[str, Any]) -> dict[str, Any] | None:
    inner = model["schema"]
    while isinstance(inner, dict) and inner.get("type") != "model-fields":
        inner = cast("dict[str, Any]", inner).get("schema")
    return cast("dict[str, Any] | None", inner)


def _behaviour(model: dict[str, Any]) -> str:
    return model.get("config", {}).get("extra_fields_behavior", "ignore")


def _forbidding(model: dict[str, Any]) -> None:
    """Make the model reject unknown fields, except the fields in `SENT_BACK`."""
    if _behaviour(model) != "ignore" or (fields := _fields_of(model)) is None:
        return
    model["config"] = {**model.get("config", {}), "extra_fields_behavior": "forbid"}
    anything = core_schema.model_field(core_schema.with_default_schema(core_schema.any_schema(), default=None))
    if {"messages", "memories", "context"} <= fields["fields"].keys():
        fields["fields"] = dict.fromkeys(SENT_BACK, anything) | fields["fields"]


def _naming(model: dict[str, Any], models: set[str]) -> None:
    models.add(model["cls"].__name__)
    if _behaviour(model) == "allow" or (fields := _fields_of(model)) is None:
        return
    names = frozenset(cast("dict[str, Any]", fields["fields"]))
    ignored = SENT_BACK if {"messages", "memories", "context"} <= names else frozenset[str]()

    def refuse(name: str) -> str:
        if name in ignored:
            return name
        raise PydanticCustomError("unknown_field", "is not a known field", {"meant": nearest(name, names) or ""})

    model["config"] = {**model.get("config", {}), "extra_fields_behavior": "allow"}
    fields["extras_keys_schema"] = core_schema.no_info_plain_validator_function(refuse)


def nearest(name: str, names: Collection[str]) -> str | None:
    """Return the field in `NARROWING` and `names` that `name` resembles, or None.

    Similar names differ only in case, underscores, a plural ending, or `_id`. In names with six or
    more letters, two letters may also differ.
    """
    if len(name) > 2 * _LONGEST:
        return None
    return _nearest(name, frozenset(names))


@lru_cache(maxsize=4096)
def _nearest(name: str, names: frozenset[str]) -> str | None:
    bare = _bare(name)
    candidates = sorted(NARROWING & names)
    for candidate in candidates:
        if bare == _bare(candidate):
            return candidate
    written = name.lower()
    for candidate in candidates:
        # In a short name, one different letter often makes another word.
        near = len(candidate) >= 6 and abs(len(written) - len(candidate)) <= 2
        if written == f"{candidate}s" or (near and _distance(written, candidate) <= 2):
            return candidate
    return None


def _bare(name: str) -> str:
    letters = name.lower().replace("-", "_")
    letters = letters.removesuffix("s") if letters.endswith(("_ids", "ids")) else letters
    return _singular((letters.removesuffix("_id") if letters.endswith("_id") else _without_id(name, letters)).replace("_", ""))


def _singular(word: str) -> str:
    return f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")


def _without_id(name: str, letters: str) -> str:
    words = {field.removesuffix("_id") for field in SCOPE_FIELDS if field.endswith("_id")}
    return letters[:-2] if letters.endswith("id") and letters[:-2].rstrip("_") in words else letters


def _distance(word: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for row_number, letter in enumerate(word, start=1):
        before, row[0] = row[0], row_number
        for at, other_letter in enumerate(other, start=1):
            before, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, before + (letter != other_letter))
    return row[-1]


def refuse_narrowing(
    fields: Iterable[Unknown], places: Callable[[str], str | None], *, deletes: bool, harmless: Collection[str] = ()
) -> None:
    """Raise UnknownFields if an unknown field resembles a misplaced scope field.

    `places` maps a scope field's name to where it belongs, or None if the request does not accept
    it. If `deletes` is true, also reject scope fields that are not accepted, except those in
    `harmless`.
    """
    scope_fields = [(field, name, _scope_field(name)) for field in fields if isinstance(name := field.path[-1], str)]
    refused = [Unknown(field.path, place) for field, _, scope_field in scope_fields if scope_field and (place := places(scope_field))]
    if deletes and not refused:
        refused = [
            Unknown(field.path, _NARROWS_NOTHING) for field, name, scope_field in scope_fields if scope_field and name not in harmless
        ]
    if refused:
        raise UnknownFields(refused)


def _scope_field(name: str) -> str | None:
    return name if name in SCOPE_FIELDS else nearest(name, SCOPE_FIELDS)


def ignored_names(fields: Iterable[Unknown]) -> str:
    """Return the distinct names of ignored fields as ASCII text, with list positions removed."""
    names = dict.fromkeys(".".join(str(part)[:_LONGEST] for part in field.path if isinstance(part, str)) for field in fields)
    quoted = [quote(name.encode("utf-8", "replace"), safe=" []$@:/-_.") for name in list(names)[:_MOST_SHOWN]]
    return ", ".join([*quoted, "..."] if len(names) > _MOST_SHOWN else quoted)
