"""Switching to a different embedding model."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

ReembedPhase = Literal["none", "filling", "paused", "swapped", "ending"]
ReembedAction = Literal["pause", "resume", "confirm", "rollback", "abort"]


class ReembedRequest(BaseModel):
    """A request to switch to a different embedding model."""

    model: str = Field(min_length=1, max_length=500)
    """The name of the model, or the directory of a local model on every machine."""
    provider: Literal["local", "openai"] | None = None
    """The provider of the model; null: the current provider. Its URL and API key come from the environment of every process."""
    dimensions: int | None = Field(default=None, ge=1, le=32768)
    """The dimensions to ask a model server for; null: the default of the model."""
    rate: float = Field(default=0, ge=0)
    """The maximum number of memories to embed per second; 0: no limit."""
    dry_run: bool = False
    """Only estimate the cost."""


class ReembedStatus(BaseModel):
    """The progress of a switch to a different embedding model."""

    phase: ReembedPhase
    """`filling` and `paused`: searches use the old model. `swapped`: the new one. `ending`: one is being deleted. `none`: no change."""
    model: str
    """The embedding model that searches use."""
    other: str | None = None
    """The other embedding model of the change."""
    texts: int = 0
    """The number of memories and former versions that need vectors of both models."""
    done: int = 0
    """The number of them that have vectors of both models."""
    tokens: int | None = None
    """The estimated number of tokens to embed; only after a dry run."""
    rate: float = 0
    """The maximum number of memories to embed per second; 0: no limit."""
    seconds_left: float | None = None
    """The estimated number of seconds until all memories have vectors of both models."""
    refused: int = 0
    """The number of memories and versions whose texts a model refuses. With that model, searches find them only by words."""
    refused_ids: list[str] = []
    """The ids of at most 100 of these memories."""
    error: str | None = None
    """The last failure. Workers keep retrying."""
