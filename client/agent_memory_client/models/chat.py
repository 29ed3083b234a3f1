"""Chat API messages: content as text, parts or null, and other fields such as `tool_calls`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from pydantic import TypeAdapter, ValidationError, ValidatorFunctionWrapHandler, WithJsonSchema, WrapValidator
from pydantic_core import InitErrorDetails, PydanticCustomError

from agent_memory_client.models._types import BLANK, FreeText, check_json, is_blank

NoContent: TypeAlias = Literal["null", "missing"]
"""Why a message has no content: it was `null`, or it was not sent."""

TEXT_PARTS: Final = frozenset({"text", "input_text", "output_text"})
"""The types of parts whose `text` is included in the message's text."""

_PART = 'must be an object with a type, such as {"type": "text", "text": "…"}'
_NOTHING = "must not be {what} in a message that has no other content: give text, a list of parts, or tool_calls"

_TEXT: TypeAdapter[str] = TypeAdapter(FreeText)


def _text_or_parts(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    """Validate text as `FreeText`. Lists and None are left for `chat_content` to validate."""
    return value if value is None or isinstance(value, list) else check(value)


Content: TypeAlias = Annotated[
    FreeText,
    WrapValidator(_text_or_parts),
    WithJsonSchema(
        {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object", "additionalProperties": True}}, {"type": "null"}]}
    ),
]
"""A message's content. Models accept text, a list of parts or null, and store the text."""


def text_of_parts(parts: Iterable[Any]) -> str:
    """Return the text of all text parts, joined by newlines. Other parts have no text."""
    return "\n".join(text for text in map(_text_of_part, parts) if text.strip())


def _text_of_part(part: Any) -> str:
    if not isinstance(part, Mapping):
        return ""
    fields = cast("Mapping[str, Any]", part)
    return str(fields["text"]) if fields.get("type") in TEXT_PARTS else ""


def chat_content(
    content: Any, has_content: bool, parts: list[Any] | None, reason: NoContent | None, fields: dict[str, Any], *, answered: bool
) -> tuple[str, list[Any] | None, NoContent | None]:
    """Return the text, the parts and the reason for missing content.

    `parts` and `reason` come from a response and must agree with `content`. Lone surrogates in
    `fields` are replaced. `answered` allows blank text that the archived server stored. Raises
    ValidationError for an invalid field.
    """
    checked = [_check_json({name: value}, name) for name, value in fields.items()]
    fields.clear()
    for field in checked:
        fields.update(field)
    parts = None if parts is None else _check_json({"content_parts": parts}, "content_parts")["content_parts"]
    if isinstance(content, list):
        parts, reason = _check_json({"content": content}, "content")["content"], None
        content = _checked_text(cast("list[Any]", parts), "content")
    elif content is None or not has_content:
        # If a client sends a response back as a request, the request states the reason.
        reason = "null" if has_content else reason or "missing"
        content = ""
    elif parts is not None:
        if _checked_text(parts, "content_parts") != content:
            raise _refusal("content_parts", "parts_differ", "differs from content: leave one of the two out")
    elif reason is not None and content:
        raise _refusal("no_content", "content_given", "must not be given with content: leave one of the two out")
    if not content or content.isspace() or (not answered and is_blank(content)):
        _check_not_empty(content, parts, reason, fields)
    return content, parts, reason


def _check_not_empty(content: str, parts: Sequence[Any] | None, reason: NoContent | None, fields: Mapping[str, Any]) -> None:
    """Require parts or another field in a message that has no text, but accept an empty string.

    Text-only clients read such a message as "" and send the empty string back. In that case, the
    server still has the other fields.
    """
    if parts or any(value not in (None, "", [], {}) for name, value in fields.items() if name != "name"):
        return
    if parts is not None:
        raise _refusal("content", "content_nothing", _NOTHING.format(what="an empty list"))
    if reason == "null":
        raise _refusal("content", "content_nothing", _NOTHING.format(what="null"))
    if reason == "missing":
        raise ValidationError.from_exception_data("message", [InitErrorDetails(type="missing", loc=("content",), input=None)])
    if content:
        raise _refusal("content", "string_blank", BLANK)


def _checked_text(parts: list[Any], field: str) -> str:
    """Validate parts and return their text. Raises ValidationError for an invalid part."""
    for position, part in enumerate(parts):
        if not isinstance(part, dict):
            raise _refusal((field, position), "content_part", _PART)
        fields = cast("dict[str, Any]", part)
        if fields.get("type") in TEXT_PARTS:
            _check_text(fields.get("text"), (field, position, "text"))
    return text_of_parts(parts)


def _check_text(text: Any, loc: tuple[str | int, ...]) -> None:
    try:
        _TEXT.validate_python(text)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        standard = problem["type"] in ("string_type", "missing")
        kind = problem["type"] if standard else PydanticCustomError(problem["type"], problem["msg"])  # pyright: ignore[reportArgumentType]
        raise ValidationError.from_exception_data("message", [InitErrorDetails(type=kind, loc=loc, input=None)]) from None


def _check_json(value: dict[str, Any], field: str) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", check_json(value))
    except PydanticCustomError as error:
        raise ValidationError.from_exception_data("message", [InitErrorDetails(type=error, loc=(field,), input=None)]) from None


def _refusal(loc: str | tuple[str | int, ...], kind: str, message: str) -> ValidationError:
    path = (loc,) if isinstance(loc, str) else loc
    error = PydanticCustomError(kind, message)  # pyright: ignore[reportArgumentType]
    return ValidationError.from_exception_data("message", [InitErrorDetails(type=error, loc=path, input=None)])


def as_sent(content: str, parts: list[Any] | None, reason: str | None) -> dict[str, Any]:
    """Return a dict with the original `content`, or an empty dict if it was missing."""
    if parts is not None:
        return {"content": parts}
    return {} if reason == "missing" else {"content": None if reason == "null" else content}
