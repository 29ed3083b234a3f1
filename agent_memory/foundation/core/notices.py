"""What a request was answered otherwise than it asked, in words: collected while it is worked on, and shown in its answer's `notices`."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

MAX_NOTICES = 20

_collected: ContextVar[list[str] | None] = ContextVar("notices", default=None)


@contextmanager
def collecting_notices() -> Generator[list[str]]:
    """Within, `add_notice` adds to the list; the request's tasks share it."""
    notices: list[str] = []
    token = _collected.set(notices)
    try:
        yield notices
    finally:
        _collected.reset(token)


def add_notice(notice: str) -> None:
    """Tells the caller of the request that is worked on; nobody where none is, and nothing twice."""
    notices = _collected.get()
    if notices is not None and notice not in notices and len(notices) < MAX_NOTICES:
        notices.append(notice)


def with_notices(answer: Mapping[str, Any], notices: list[str]) -> dict[str, Any]:
    """A JSON object with notices behind those that it has."""
    return {**answer, "notices": [*(answer.get("notices") or ()), *notices]}
