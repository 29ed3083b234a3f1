"""Instants as text and from Redis' clock."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(moment: datetime) -> str:
    """UTC ISO 8601."""
    return (moment if moment.tzinfo is UTC else moment.astimezone(UTC)).isoformat()


def from_micros(micros: int) -> datetime:
    """A time in µs since 1970."""
    return datetime.fromtimestamp(micros / 1e6, UTC)
