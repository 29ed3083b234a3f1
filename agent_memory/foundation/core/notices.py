"""Collect notices during a request; the answer shows them in its `notices`."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

MAX_NOTICES = 20

_collected: ContextVar[list[str] | None] = ContextVar("notices", default=None)


@contextmanager
def collecting_notices() -> Generator[list[str]]:
    """Collect all notices that `add_notice` gets within this context, from all tasks of the request."""
    notices: list[str] = []
    token = _collected.set(notices)
    try:
        yield notices
    finally:
        _collected.reset(token)


def add_notice(notice: str) -> None:
    """Add a notice to the current request's answer. Repeats and notices beyond `MAX_NOTICES` are ignored."""
    notices = _collected.get()
    if notices is not None and notice not in notices and len(notices) < MAX_NOTICES:
        notices.append(notice)


def with_notices(answer: Mapping[str, Any], notices: list[str]) -> dict[str, Any]:
    """Return the answer with `notices` appended to the notices that it already has."""
    return {**answer, "notices": [*(answer.get("notices") or ()), *notices]}
