"""Read request bodies up to a size limit, and validate them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope

from agent_memory.foundation.api.errors import BodyTooLarge, UnsupportedMedia, broken_json, invalid, unknown
from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.input.bounds import MAX_LIST_ITEMS, check_lists, check_values
from agent_memory.foundation.core.input.lone_surrogates import repair_json
from agent_memory.foundation.core.input.unknown_fields import FieldCheck, Unknown, UnknownFields
from agent_memory.foundation.core.notices import add_notice

AT_ONCE_BYTES = 32 * 1024
"""Larger bodies are validated in a thread. Validating this size takes up to 10 ms."""


class RawBody(bytes):
    """A body that the operation parses itself."""


class BodyReader:
    def __init__(self, hint: Any) -> None:
        self._fields = FieldCheck(hint)
        self._type: TypeAdapter[Any] = TypeAdapter(hint)

    @property
    def scope_fields(self) -> Collection[str]:
        return self._fields.scope_fields

    def parse(self, body: bytes, *, strict: bool) -> tuple[Any, Sequence[Unknown]]:
        """Return the parsed value and any ignored fields.

        If `strict` is true, unknown fields are errors. Raises BadInput or RequestValidationError.
        """
        if len(body) > MAX_LIST_ITEMS and body.count(b",") >= MAX_LIST_ITEMS:
            _check_lists(body)
        try:
            return self._fields.read(lambda validator: validator.validate_json(body), strict=strict)
        except UnknownFields as refused:
            raise unknown(refused, "body") from None
        except ValidationError as error:
            if (repaired := self._repaired(body, error)) is None:
                raise _refusal(error) from None
        return self.parse(repaired, strict=strict)

    def _repaired(self, body: bytes, error: ValidationError) -> bytes | None:
        """Repair lone surrogates in the body. Return None if that is impossible.

        Raises RequestValidationError if an id contains a lone surrogate.
        """
        if "surrogate" not in (reason := _syntax_error(error) or "") and "hex escape" not in reason:
            return None
        repaired = repair_json(body)
        if repaired is None:
            return None
        try:
            self._type.validate_python(repaired.sent)
        except ValidationError as refused:
            if any(problem["type"] == "string_surrogates" for problem in refused.errors(include_input=False, include_context=False)):
                raise invalid(refused, "body") from None
        add_notice(repaired.notice)
        return repaired.body


def _refusal(error: ValidationError) -> RequestValidationError:
    reason = _syntax_error(error)
    return invalid(error, "body") if reason is None else broken_json(reason)


def _syntax_error(error: ValidationError) -> str | None:
    if error.error_count() == 1 and (problem := error.errors(include_url=False, include_input=False)[0])["type"] == "json_invalid":
        return str(problem["msg"]).removeprefix("Invalid JSON: ")
    return None


def _check_lists(body: bytes) -> None:
    try:
        value = from_json(body)
    except ValueError:
        return  # validation reports the error
    check_lists(value, "body")


async def read_body(scope: Scope, receive: Receive, media_type: str | None = "application/json") -> bytes:
    """Return the full request body.

    `media_type` is the required content type, or None to accept any. Raises BodyTooLarge, BadInput,
    UnsupportedMedia, or ClientDisconnect.
    """
    limit: int = scope["app"].state.max_body_bytes
    _check_headers(scope, media_type, limit)
    chunks: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            raise BodyTooLarge(limit)
        more = message.get("more_body", False)
    body = b"".join(chunks)
    if media_type == "application/json":
        check_values(body)
    return body


def _check_headers(scope: Scope, media_type: str | None, limit: int) -> None:
    declared = False
    for name, value in scope["headers"]:
        # A number with more than 18 digits exceeds every limit, and int() raises for 5,000 digits.
        if name == b"content-length" and (len(value) > 18 or (value.isdigit() and int(value) > limit)):
            raise BodyTooLarge(limit)
        if name == b"content-type" and media_type is not None:
            declared = _is_media_type(value, media_type.encode())
    # Web pages from other origins cannot send JSON without a CORS preflight.
    if not declared and media_type is not None:
        body_format = "JSON" if media_type == "application/json" else "lines of JSON"
        message = f"send the body as {body_format}, with the header Content-Type: {media_type}"
        raise UnsupportedMedia(message, field="content-type", where="header")


def _is_media_type(content_type: bytes, expected: bytes) -> bool:
    if content_type == expected:
        return True
    media_type = content_type.partition(b";")[0].strip().lower()
    return media_type == expected or (
        expected == b"application/json" and media_type.startswith(b"application/") and media_type.endswith(b"+json")
    )


async def read_object(request: Request) -> dict[str, Any]:
    """Parse the body as a JSON object whose strings may contain lone surrogates.

    Raises BadInput or any error from `read_body`.
    """
    body = await read_body(request.scope, request.receive)
    try:
        # The caller validates the value in a later turn of the event loop.
        value = from_json(body) if len(body) <= AT_ONCE_BYTES else await asyncio.to_thread(from_json, body)
    except ValueError:
        repaired = repair_json(body)
        if repaired is None:
            raise BadInput("must be valid JSON", field="body") from None
        add_notice(repaired.notice)
        value = repaired.sent
    if not isinstance(value, dict):
        raise BadInput("must be an object", field="body")
    return value
