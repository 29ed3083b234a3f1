"""The server's load over time."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from agent_memory_client.models._types import Instant

LoadPeriod = Literal["hour", "day"]


class LoadPoint(BaseModel):
    """The combined load of all processes in an interval of one or ten minutes.

    Values are null if no process was running.
    """

    at: Instant
    """Start of the interval."""
    memories: int | None = None
    """The number of memories at the end of the interval, for all tenants."""
    sessions: int | None = None
    """The number of sessions at the end of the interval."""
    users: int | None = None
    """The number of users with new memories. If there are more than 20,000 new memories, some are not counted."""
    pending: int | None = None
    """The number of background jobs that were waiting at the end of the interval."""
    dead: int | None = None
    """The number of background jobs that failed permanently."""
    oldest_seconds: float | None = None
    """The age of the oldest due job at the end of the interval, in seconds."""
    healthy: float | None = None
    """The share of Redis health checks that found no problem, from 0 to 1."""
    requests: int | None = None
    """The number of answered requests, not counting monitoring and streams."""
    failed: int | None = None
    """The number of requests answered with a status of 500 or higher."""
    median_ms: float | None = None
    """The median response time in milliseconds."""
    p95_ms: float | None = None
    """The 95th percentile of the response time in milliseconds."""
    model_tokens: int | None = None
    """The number of tokens used by calls to chat models."""


class LoadHistory(BaseModel):
    """The server's load over the last hour or day."""

    step_seconds: int
    """The length of each interval in seconds."""
    points: list[LoadPoint]
    """The intervals, oldest first. The last interval is still in progress."""
