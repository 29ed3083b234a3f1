"""How a refused request is answered: `{"detail": "…"}`, or a list of problems with the fields they are in."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class ValidationError(BaseModel):
    """One problem: where (`loc`, from "body", "query" or "path" down to the field), what, and which kind."""

    loc: list[str | int]
    msg: str
    type: str
    input: Any = None
    ctx: dict[str, Any] = Field(default_factory=dict[str, Any])


class HTTPValidationError(BaseModel):
    """All problems of a request (status 422)."""

    detail: list[ValidationError] = Field(default_factory=list[ValidationError])


class ErrorResponse(BaseModel):
    """Every other refusal; `code` is a stable word for programs."""

    detail: str
    code: str | None = None
