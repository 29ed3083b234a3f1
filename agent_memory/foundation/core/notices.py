"""Collect notices to include in the response to a request."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

MAX_NOTICES = 20

_collected: ContextVar[list[str] | None] = ContextVar("notices", default=None)


@contextmanager
def collecting_notices() -> Generator[list[str]]:
    """Collect the notices that tasks add inside this `with` block."""
    notices: list[str] = []
    token = _collected.set(notices)
    try:
        yield notices
    finally:
        _collected.reset(token)


def add_notice(notice: str) -> None:
    """Add a notice to the response. Ignore duplicates and anything beyond `MAX_NOTICES`."""
    notices = _collected.get()
    if notices is not None and notice not in notices and len(notices) < MAX_NOTICES:
        notices.append(notice)


def with_notices(answer: Mapping[str, Any], notices: list[str]) -> dict[str, Any]:
    """Return the response with `notices` appended to its existing notices."""
    return {**answer, "notices": [*(answer.get("notices") or ()), *notices]}
