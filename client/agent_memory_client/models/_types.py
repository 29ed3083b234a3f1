"""Constrained types for the API models: text, identifiers, tags, times and JSON objects.

Every chat turn passes through these types, so pydantic's core does as much of the validation as
possible. A message needs one Python call per identifier and time, and none for its text.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, Final, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema
from ulid import ULID

MAX_ID_BYTES = 512
MAX_ITEM_KEY_CHARS = 2_000
MAX_ROLE_CHARS = 64
MAX_TEXT_BYTES = 64 * 1024
MAX_TAGS = 64
MAX_TAG_BYTES = 256
MAX_JSON_DEPTH = 32
MAX_FILTER_VALUES = 1000
# U+FDFA takes 33 bytes in NFKC; no other character takes more than 24.
_MOST_NORMALIZED_BYTES = 33
_SLICE = 1024
MAX_COUNT = 2**53 - 1
"""The largest integer up to which doubles represent every integer exactly. Redis Lua and JavaScript use doubles for all
numbers."""
MAX_TTL_SECONDS = 100 * 366 * 24 * 3600

ANSWER: Mapping[str, bool] = MappingProxyType({"answer": True})
"""Validation context for server responses. It turns off the rules that apply only to callers (sizes, commas)."""

_NO_CONTROLS = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f]*$"
_NO_CONTROLS_AT_ALL = r"^[^\x00-\x1f\x7f-\x9f]*$"
_NOT_BLANK = r"\S"
# No white space, no control characters, and nothing that Unicode allows programs to ignore: zero-width characters,
# fillers, direction marks, tags.
_VISIBLE = re.compile(
    r"[^\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# ECMA-48 escape sequences (7-bit): colors, cursor movements, and strings such as titles and links. A string ends at the
# end of its line, so that an unclosed string does not hide the rest of the text. Bytes such as 0x9b do not count,
# because they are usually letters that were decoded incorrectly.
ANSI_SEQUENCE: Final = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]?|[\]PX^_][^\x07\x1b\n]*+(?:\x07|\x1b\\)|[ -/]*+[0-~]?)")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
REPLACEMENT: Final = "\ufffd"
"""The replacement for lone surrogates, which UTF-8 cannot represent."""


now = partial(datetime.now, UTC)
"""Return the current time in UTC. A partial is faster than a function, and a record without times calls it three
times."""


def no_object() -> dict[str, Any]:
    """Return an empty object. `dict[str, Any]` would be ten times slower as a default factory."""
    return {}


def new_id() -> str:
    """Return a new ULID. ULIDs are unique and sort by time."""
    return str(ULID())


def _matching(pattern: str, kind: str, message: str) -> CoreSchema:
    """Return a schema for text that must match `pattern`, with a custom error type and message."""
    return core_schema.custom_error_schema(core_schema.str_schema(pattern=pattern), custom_error_type=kind, custom_error_message=message)


def is_blank(text: str) -> bool:
    """True if the text contains no visible characters.

    Whitespace, zero-width and filler characters, control characters and terminal escape sequences
    are invisible.
    """
    if not text or text.isspace() or _VISIBLE.search(text) is None:
        return True
    return "\x1b" in text and _VISIBLE.search(ANSI_SEQUENCE.sub("", text)) is None


def replace_lone_surrogates(text: str) -> str:
    """Replace lone surrogates with U+FFFD. Every surrogate in a Python str is a lone surrogate."""
    return text if text.isascii() else _LONE_SURROGATE.sub(REPLACEMENT, text)


BLANK: Final = "must not be blank: give at least one visible character"
_SURROGATES = "must be valid Unicode: remove or replace the lone surrogate characters (U+D800 to U+DFFF)"


def _strict_string() -> CoreSchema:
    """Return a schema for str that rejects lone surrogates with its own error type.

    The empty pattern is necessary because a string schema decodes its input only if it has a
    constraint.
    """
    return _string(_matching("", "string_surrogates", _SURROGATES))


def _free_string() -> CoreSchema:
    """Return a schema for str that replaces lone surrogates.

    Text that has none does not need a Python call.
    """
    valid, other = core_schema.str_schema(pattern=""), core_schema.no_info_plain_validator_function(replace_lone_surrogates)
    return _string(core_schema.union_schema([valid, other], mode="left_to_right"))


def _string(of_python: CoreSchema) -> CoreSchema:
    is_string = core_schema.custom_error_schema(core_schema.is_instance_schema(str), custom_error_type="string_type")
    return core_schema.json_or_python_schema(
        json_schema=core_schema.str_schema(), python_schema=core_schema.chain_schema([is_string, of_python])
    )


@dataclass(frozen=True, slots=True)
class _TextRule:
    """Annotation for text that can contain any characters. Pydantic's core checks it."""

    blank: bool = True

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if self.blank:
            return _free_string()
        return core_schema.chain_schema([_free_string(), _matching(_NOT_BLANK, "string_blank", BLANK)])

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "string"} if self.blank else {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class _NameRule:
    """Annotation for ids, tags and names, which must not contain control characters."""

    blank: bool = True
    line_breaks: bool = True
    slash: bool = True
    max_chars: int = MAX_ID_BYTES

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        steps = [_strict_string(), core_schema.str_schema(max_length=self.max_chars)]
        if self.line_breaks:
            message = "must not contain control characters except tab, line feed and carriage return: remove them"
            steps.append(_matching(_NO_CONTROLS, "string_control_characters", message))
        else:
            message = "must not contain control characters or line breaks: remove them"
            steps.append(_matching(_NO_CONTROLS_AT_ALL, "string_control_characters", message))
        if not self.blank:
            steps.append(_matching(_NOT_BLANK, "string_blank", BLANK))
        if not self.slash:
            message = "must not contain '/': it is one segment of a URL's path, use another separator such as ':'"
            steps.append(_matching("^[^/]*$", "string_slash", message))
        return core_schema.chain_schema(steps)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        least = {} if self.blank else {"minLength": 1}
        return {"type": "string", **least, "maxLength": self.max_chars}


def _check_bytes(value: str, limit: int) -> str:
    if len(value) * 4 > limit and len(value.encode()) > limit:
        message = "must take at most {limit} bytes in UTF-8, got {size}: shorten it"
        raise PydanticCustomError("string_too_many_bytes", message, {"limit": limit, "size": len(value.encode())})
    return value


def _nfc(value: str) -> str:
    """Normalize the text to NFC, so that different encodings of the same characters are equal."""
    return value if value.isascii() else unicodedata.normalize("NFC", value)


def _check_id(value: str) -> str:
    # In ASCII text, the number of bytes equals the number of characters, which is already checked.
    return value if value.isascii() else _check_bytes(_nfc(value), MAX_ID_BYTES)


def _check_session_id(value: str) -> str:
    if value in (".", ".."):
        raise PydanticCustomError("string_dots", "must not be '.' or '..': these mean another place in a URL's path, choose another name")
    return _check_id(value)


def _check_visible(value: str, info: ValidationInfo) -> str:
    # The archived server stored such texts, so responses may contain them.
    if info.context is not ANSWER and is_blank(value):
        raise PydanticCustomError("string_blank", BLANK)
    return value


def normalized_bytes(text: str, most: int) -> int:
    """Return the UTF-8 size of text after NFKC normalization. Stop counting once it exceeds `most`.

    Search uses the normalized text. Normalization can expand one character to as many as 18
    (U+FDFA).
    """
    if text.isascii() or len(text) * _MOST_NORMALIZED_BYTES <= most:
        return len(text.encode())
    size = 0
    for start in range(0, len(text), _SLICE):
        piece = text[start : start + _SLICE]
        size += len((piece if unicodedata.is_normalized("NFKC", piece) else unicodedata.normalize("NFKC", piece)).encode())
        if size > most:
            break
    return size


def _check_memory_text(value: str, info: ValidationInfo) -> str:
    if info.context is ANSWER:
        return value
    _check_bytes(_check_visible(value, info), MAX_TEXT_BYTES)
    if len(value) * _MOST_NORMALIZED_BYTES > MAX_TEXT_BYTES and normalized_bytes(value, MAX_TEXT_BYTES) > MAX_TEXT_BYTES:
        message = "must take at most {limit} bytes in UTF-8 after Unicode normalization (NFKC), which makes it longer: shorten it"
        raise PydanticCustomError("string_too_many_bytes", message, {"limit": MAX_TEXT_BYTES})
    return value


FreeText: TypeAlias = Annotated[str, _TextRule()]
"""Text that may be blank and may contain any JSON characters. U+FFFD replaces lone surrogates."""

Text: TypeAlias = Annotated[str, _TextRule(blank=False), AfterValidator(_check_visible)]
"""Like `FreeText`, but with at least one visible character."""

MemoryText: TypeAlias = Annotated[str, _TextRule(blank=False), AfterValidator(_check_memory_text)]
"""A memory's text: not blank, at most 64 KiB, both before and after NFKC."""

Role: TypeAlias = Annotated[str, _NameRule(blank=False, line_breaks=False, max_chars=MAX_ROLE_CHARS)]
"""The speaker: any name of at most 64 characters."""

Identifier: TypeAlias = Annotated[str, _NameRule(blank=False, line_breaks=False), AfterValidator(_check_id)]
"""An id in NFC: not blank, no control characters, at most 512 bytes."""

SessionIdentifier: TypeAlias = Annotated[str, _NameRule(blank=False, line_breaks=False, slash=False), AfterValidator(_check_session_id)]
"""A session's id: an `Identifier` without '/', because the id is a segment of a URL path."""


ExactName: TypeAlias = Annotated[str, _NameRule(), Field(min_length=1), AfterValidator(partial(_check_bytes, limit=MAX_ID_BYTES))]
"""A name that is compared exactly as spelled, without NFC: not empty, at most 512 bytes."""

ItemKey: TypeAlias = Annotated[str, _NameRule(max_chars=MAX_ITEM_KEY_CHARS), Field(min_length=1)]
"""An item's key, exactly as spelled: not empty, at most 2,000 characters."""

_MAYBE_EMPTY: JsonSchemaValue = {"type": "string", "maxLength": MAX_ID_BYTES}

OptionalIdentifier: TypeAlias = Annotated[
    Identifier | None,
    BeforeValidator(lambda value: None if value == "" else value),
    WithJsonSchema({"anyOf": [_MAYBE_EMPTY, {"type": "null"}]}),
]
"""An `Identifier` or None. An empty string counts as None."""


def _clear_or_check(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    return value if value == "" else check(value)


ClearableIdentifier: TypeAlias = Annotated[Identifier, WrapValidator(_clear_or_check), WithJsonSchema(_MAYBE_EMPTY)]
"""An `Identifier`, or an empty string to clear the stored value."""


def _as_utc(value: datetime) -> datetime:
    """Convert the time to UTC. UTC is the default time zone."""
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError("datetime_out_of_range", "must lie between the years 1 and 9999 in UTC") from None


Instant: TypeAlias = Annotated[datetime, AfterValidator(_as_utc)]
"""A time in UTC. Accepts ISO 8601 (UTC if it has no zone) and epoch seconds as a number. Responses use ISO 8601 with
`Z`."""


_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def _day_or_check(value: Any, check: ValidatorFunctionWrapHandler) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if isinstance(value, str) and _DAY.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass  # The check for an `Instant` reports the error.
    return check(value)


@dataclass(frozen=True, slots=True)
class _DayOrInstantRule:
    """Annotation for an `Instant` or a plain date. A plain date stays a `date`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        as_it_is = core_schema.plain_serializer_function_ser_schema(lambda value: value, return_schema=core_schema.any_schema())
        return core_schema.no_info_wrap_validator_function(_day_or_check, handler.generate_schema(Instant), serialization=as_it_is)


DayOrInstant: TypeAlias = Annotated[date, _DayOrInstantRule()]
"""An `Instant`, or a plain day such as `2026-11-25`. A plain day stays a `date` and means the whole day."""


def _check_tags(values: list[str] | None, info: ValidationInfo) -> list[str] | None:
    """Normalize tags to NFC and drop blank tags, like the archived server. Reject commas."""
    if values is None or info.context is ANSWER:
        return values
    _check_commas(values)
    return [_check_bytes(_nfc(value), MAX_TAG_BYTES) for value in values if value and not value.isspace()]


def _check_commas(values: list[str]) -> None:
    for index, value in enumerate(values):
        if "," in value:
            message = "must not contain commas, item {index} does: split it into several items"
            raise PydanticCustomError("tag_comma", message, {"index": index})


_Tag: TypeAlias = Annotated[str, _NameRule(line_breaks=False, max_chars=MAX_TAG_BYTES)]

Tags: TypeAlias = Annotated[Annotated[list[_Tag], Field(max_length=MAX_TAGS)] | None, AfterValidator(_check_tags)]
"""Topics or entities: at most 64 tags of at most 256 bytes each, without commas."""


def _check_references(values: list[str] | None, info: ValidationInfo) -> list[str] | None:
    if values is not None and info.context is not ANSWER:
        _check_commas(values)
    return values


References: TypeAlias = Annotated[list[Identifier] | None, AfterValidator(_check_references)]
"""Ids (without commas) of the messages that a memory comes from."""

JSONTypes: TypeAlias = str | float | int | bool | list[Any] | dict[str, Any] | None
"""A value in a caller's JSON object."""


def check_json(value: dict[str, Any] | None) -> dict[str, Any] | None:
    """Replace lone surrogates with U+FFFD at any depth, and return the JSON value.

    Values that are not JSON are rejected, as is nesting that is deep enough to overflow a parser's
    stack. Not recursive.
    """
    level: list[Any] = [value] if value else []
    has_surrogates = False
    for _ in range(MAX_JSON_DEPTH):
        if not level:
            return _without_lone_surrogates(value) if has_surrogates else value
        below: list[Any] = []
        for container in level:
            children: Any = container
            if isinstance(container, dict):
                for key in container:
                    _check_json_key(key)
                has_surrogates = has_surrogates or any(map(_has_surrogates, container))
                children = container.values()
            has_surrogates = has_surrogates or any(map(_has_surrogates, children))
            below.extend(child for child in children if _is_container(child))
        level = below
    if level:
        raise PydanticCustomError("json_too_deep", "must be nested at most {depth} levels deep: flatten it", {"depth": MAX_JSON_DEPTH})
    return _without_lone_surrogates(value) if has_surrogates else value


def _check_json_key(key: Any) -> None:
    if not isinstance(key, str):
        raise PydanticCustomError("json_key", "must have strings as keys: turn the other keys into strings")


def _has_surrogates(value: Any) -> bool:
    return isinstance(value, str) and not value.isascii() and _LONE_SURROGATE.search(value) is not None


def _without_lone_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return replace_lone_surrogates(value)
    if isinstance(value, dict):
        return {replace_lone_surrogates(key): _without_lone_surrogates(child) for key, child in value.items()}
    return [_without_lone_surrogates(child) for child in value] if isinstance(value, list) else value


def _is_container(value: Any) -> bool:
    """True for a list or an object. Raises an error if the value is not JSON."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise PydanticCustomError("json_not_finite", "must not contain NaN or Infinity, which JSON cannot say: use null or a string")
        return False
    if value is None or isinstance(value, (bool, int, str)):
        return False
    if isinstance(value, (dict, list)):
        return True
    raise PydanticCustomError(
        "json_type", "must contain JSON only (null, booleans, numbers, strings, lists, objects), got {type}", {"type": type(value).__name__}
    )


def _json_value_schema() -> JsonSchemaValue:
    simple: list[JsonSchemaValue] = [{"type": name} for name in ("string", "number", "integer", "boolean")]
    nested: list[JsonSchemaValue] = [{"type": "array", "items": {}}, {"type": "object", "additionalProperties": True}]
    return {"anyOf": [*simple, *nested, {"type": "null"}]}


@dataclass(frozen=True, slots=True)
class _JsonObjectRule:
    """Annotation for a caller's JSON object. `typed` adds the value types to the JSON schema."""

    typed: bool

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(check_json, core_schema.dict_schema())

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "object", "additionalProperties": _json_value_schema() if self.typed else True}


JsonObject: TypeAlias = Annotated[dict[str, JSONTypes], _JsonObjectRule(typed=True)]
"""A caller's JSON object: finite numbers, at most 32 levels. U+FFFD replaces lone surrogates."""

AnyObject: TypeAlias = Annotated[dict[str, Any], _JsonObjectRule(typed=False)]
"""Like `JsonObject`, but the JSON schema does not specify the types of the values."""

Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
"""A finite number."""

WindowTokens: TypeAlias = Annotated[int, Field(ge=0, le=MAX_COUNT)]
"""A context window in tokens. 0 means "not set". Numeric strings are accepted."""


Absent = Field(default=None, exclude_if=lambda value: value is None)
"""A field that responses omit if it has no value, so that older programs get only the fields that they know."""
