"""Error response bodies: `{"detail": "…"}`, or a list of invalid fields."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class ValidationError(BaseModel):
    """A problem with a request: its location (`loc`), message and type."""

    loc: list[str | int]
    """The location of the problem: `body`, `query`, `path` or `header`, followed by the names and positions that lead
    to the field."""
    msg: str
    """The problem and how to fix it."""
    type: str
    """A stable code for the kind of problem."""
    input: Any = None
    """Always omitted: this server never echoes a request's values."""
    ctx: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Values used in the message, such as a limit."""


class HTTPValidationError(BaseModel):
    """The problems with an invalid request (status 422)."""

    detail: list[ValidationError] = Field(default_factory=list[ValidationError])
    """The problems in the request."""


class ErrorResponse(BaseModel):
    """The body of every error response that is not an `HTTPValidationError`."""

    detail: str
    """The reason and how to fix it."""
    code: str | None = None
    """A stable code for the reason, such as `not_found`."""
    field: str | None = None
    """The field that caused the error, if any."""
    hint: str | None = None
    """For `not_found`: what to check."""
