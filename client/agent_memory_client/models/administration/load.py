"""The server's load over time."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from agent_memory_client.models._types import Instant

LoadPeriod = Literal["hour", "day"]


class LoadPoint(BaseModel):
    """A minute or ten minutes of all processes. Values are null while no process ran."""

    at: Instant
    """The begin of this time."""
    memories: int | None = None
    """The number of memories at its end, of all tenants."""
    sessions: int | None = None
    """The number of sessions at its end."""
    users: int | None = None
    """The number of users with new memories. Above 20,000 new memories, a part of them is counted."""
    pending: int | None = None
    """Pieces of background work that waited at its end."""
    dead: int | None = None
    """Pieces of background work that were given up."""
    oldest_seconds: float | None = None
    """The age of the oldest due work at its end."""
    healthy: float | None = None
    """The share of looks at Redis that found no problem, from 0 to 1."""
    requests: int | None = None
    """Answered requests, without those of monitoring and streams."""
    failed: int | None = None
    """Requests that were answered with a status of 500 or more."""
    median_ms: float | None = None
    """The median time of a request."""
    p95_ms: float | None = None
    """The 95th percentile of the times."""
    model_tokens: int | None = None
    """Tokens of calls to chat models."""


class LoadHistory(BaseModel):
    """The load of the last hour or day."""

    step_seconds: int
    """The length of each point's time."""
    points: list[LoadPoint]
    """Oldest first. The last one is not over yet."""
