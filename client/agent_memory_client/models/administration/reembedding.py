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
    """The model's provider. Null means the current one. Its URL and API key come from each process's environment."""
    dimensions: int | None = Field(default=None, ge=1, le=32768)
    """The dimensions to request from a model server. Null means the model's default."""
    rate: float = Field(default=0, ge=0)
    """The maximum number of memories to embed per second. 0 means no limit."""
    dry_run: bool = False
    """Only estimate the cost."""


class ReembedStatus(BaseModel):
    """The progress of a switch to a different embedding model."""

    phase: ReembedPhase
    """`filling` and `paused`: searches use the old model. `swapped`: the new one. `ending`: one is being deleted. `none`: no change."""
    model: str
    """The embedding model that searches use."""
    other: str | None = None
    """The other embedding model in the change."""
    texts: int = 0
    """The number of memories and former versions that need vectors from both models."""
    done: int = 0
    """How many of them have vectors from both models."""
    tokens: int | None = None
    """The estimated number of tokens to embed. Only set by a dry run."""
    rate: float = 0
    """The maximum number of memories to embed per second. 0 means no limit."""
    seconds_left: float | None = None
    """The estimated number of seconds until all memories have vectors from both models."""
    refused: int = 0
    """The number of memories and versions whose text a model rejects. With that model, searches find them only by
    keywords."""
    refused_ids: list[str] = []
    """The ids of up to 100 of these memories."""
    error: str | None = None
    """The last failure. Workers keep retrying."""
