"""Errors of refused requests: `{"detail": "…"}`, or a list of problems with their fields."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class ValidationError(BaseModel):
    """A problem of a request: its place (`loc`), its message and its type."""

    loc: list[str | int]
    """The place of the problem: `body`, `query`, `path` or `header`, then names and positions down to the field."""
    msg: str
    """The problem, and how to fix it."""
    type: str
    """A stable code for the kind of problem."""
    input: Any = None
    """Always left out: this server never repeats a request's values."""
    ctx: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Values of the message, such as a limit."""


class HTTPValidationError(BaseModel):
    """All problems of a request (status 422)."""

    detail: list[ValidationError] = Field(default_factory=list[ValidationError])
    """The problems of the request."""


class ErrorResponse(BaseModel):
    """Any other refusal of a request."""

    detail: str
    """The reason, and how to fix it."""
    code: str | None = None
    """A stable code for the reason, such as `not_found`."""
