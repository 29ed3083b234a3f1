"""Pinned memories in prompts."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field


class PinnedInPrompt(BaseModel):
    """The maximum size in tokens of the user's pinned memories in a prompt."""

    tokens: Annotated[int, Field(ge=32, le=300)] = 300
