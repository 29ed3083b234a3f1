"""Define response classes, and the error responses that routes document."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from types import MappingProxyType
from typing import Any, cast

from fastapi import Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from pydantic_core import from_json, to_json
from starlette.types import Receive, Scope, Send

from agent_memory.foundation.core.notices import with_notices
from agent_memory_client.models import ErrorResponse, HTTPValidationError

CONTENT_POLICY = "agent_memory.content_policy"
"""Key in the ASGI scope for a page's Content-Security-Policy."""
DEADLINE = "agent_memory.deadline"
"""Key in the ASGI scope for the request's `asyncio.Timeout`."""
HAS_REQUEST_ID = "agent_memory.has_request_id"
"""Key in the ASGI scope. Set it if the response already has an `X-Request-Id`."""
LEAVE = "agent_memory.leave"
"""Key in the ASGI scope for a function that frees the request's slot."""


class ModelResponse(Response):
    """A 200 response that serializes a model to JSON but does not validate it."""

    def __init__(self, model: BaseModel, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(model.model_dump_json(by_alias=True), media_type="application/json")
        self.raw_headers.extend(headers)
        self.model = model


class ValuesResponse(Response):
    """A 200 response built from plain values in the shape of a wire model."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(to_json(values, inf_nan_mode="null"), media_type="application/json")
        self.model = values


class JsonResponse(Response):
    """A JSON response with plain data. Values that JSON does not support become strings."""

    def __init__(self, data: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        super().__init__(to_json(data, fallback=str, inf_nan_mode="null"), status, headers, "application/json")


class PagedResponse(StreamingResponse):
    """A response sent page by page. Each page gets the request's full time limit."""

    def __init__(self, pieces: AsyncGenerator[bytes], media_type: str, headers: Mapping[str, str]) -> None:
        super().__init__(self._paced(pieces), media_type=media_type, headers=headers)
        self._deadline: asyncio.Timeout | None = None
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._deadline = scope.get(DEADLINE)
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._pieces.aclose()

    async def _paced(self, pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        loop = asyncio.get_running_loop()
        when = None if self._deadline is None else self._deadline.when()
        seconds = None if when is None else max(when - loop.time(), 1.0)
        async for piece in pieces:
            if self._deadline is not None and seconds is not None:
                self._deadline.reschedule(loop.time() + seconds)
            yield piece


def add_notices(response: Response, notices: list[str]) -> Response:
    """Add the notices to the body if it is a JSON object."""
    if not notices or response.media_type != "application/json" or isinstance(response, StreamingResponse):
        return response
    body = from_json(bytes(response.body))
    if isinstance(body, dict):
        response.body = to_json(with_notices(cast("dict[str, Any]", body), notices))
        response.raw_headers = [pair for pair in response.raw_headers if pair[0] != b"content-length"]
        response.raw_headers.append((b"content-length", b"%d" % len(response.body)))
    return response


def etag(version: int) -> tuple[bytes, bytes]:
    return b"etag", b'"%d"' % version


_TEXTS = {
    400: "The request is well-formed, but asks for something unsupported.",
    401: "The credentials are missing or invalid. Only if the server requires credentials.",
    403: "The credentials do not give access to this data or operation.",
    404: "Not found.",
    409: "The request conflicts with stored data or with work in progress.",
    412: "`If-Match` does not match the stored version.",
    413: "The body is larger than the limit.",
    415: "The body is not declared as JSON.",
    503: "Redis or a model is unavailable, or the request took too long. Try again after `Retry-After` seconds.",
}
_RETRY_AFTER = {"Retry-After": {"description": "Seconds to wait before retrying.", "schema": {"type": "integer"}}}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return a route's `responses` argument: the given statuses plus 401, 403, 422 and 503."""
    responses: dict[int | str, dict[str, Any]] = {
        status: {"model": ErrorResponse, "description": _TEXTS[status]} for status in (401, 403, *statuses)
    }
    responses[422] = {"model": HTTPValidationError, "description": "A field is invalid."}
    responses[503] = {"model": ErrorResponse, "description": _TEXTS[503], "headers": _RETRY_AFTER}
    return responses


def versioned(*statuses: int, headers: Mapping[str, str] = MappingProxyType({})) -> dict[int | str, dict[str, Any]]:
    """Return `errors(*statuses)` plus a 200 response with an ETag.

    `headers` maps names to descriptions.
    """
    described = {"ETag": "The session's version, for `If-Match`.", **headers}
    return {
        200: {"headers": {name: {"description": text, "schema": {"type": "string"}} for name, text in described.items()}},
        **errors(*statuses),
    }
