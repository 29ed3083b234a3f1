"""Collect notices for the answer of a request, shown in its `notices`."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

MAX_NOTICES = 20

_collected: ContextVar[list[str] | None] = ContextVar("notices", default=None)


@contextmanager
def collecting_notices() -> Generator[list[str]]:
    """Collect the notices of `add_notice` within this context, from all tasks of the request."""
    notices: list[str] = []
    token = _collected.set(notices)
    try:
        yield notices
    finally:
        _collected.reset(token)


def add_notice(notice: str) -> None:
    """Add a notice to the current request's answer, once."""
    notices = _collected.get()
    if notices is not None and notice not in notices and len(notices) < MAX_NOTICES:
        notices.append(notice)


def with_notices(answer: Mapping[str, Any], notices: list[str]) -> dict[str, Any]:
    """Return the answer with these notices after its own."""
    return {**answer, "notices": [*(answer.get("notices") or ()), *notices]}
