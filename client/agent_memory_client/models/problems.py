"""Answers to refused requests: `{"detail": "…"}`, or a list of problems with their fields."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class ValidationError(BaseModel):
    """One problem: where (`loc`, from "body", "query" or "path" down to the field), what, and which kind."""

    loc: list[str | int]
    """Where the problem is: `body`, `query`, `path` or `header`, then the names and positions down to the field."""
    msg: str
    """What is wrong and how to put it right."""
    type: str
    """A stable word for programs that says which kind of problem it is."""
    input: Any = None
    """Left out by this server, which repeats nothing that was sent."""
    ctx: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Values that belong to the message, such as a limit."""


class HTTPValidationError(BaseModel):
    """All problems of a request (status 422)."""

    detail: list[ValidationError] = Field(default_factory=list[ValidationError])
    """Each problem that was found."""


class ErrorResponse(BaseModel):
    """Every other refusal; `code` is a stable word for programs."""

    detail: str
    """What is wrong and how to put it right."""
    code: str | None = None
    """A stable word for programs, such as `not_found`."""
