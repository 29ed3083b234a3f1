"""Truncate text, and remove terminal control characters."""

from __future__ import annotations

import re

from agent_memory_client.models._types import ANSI_SEQUENCE

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def plain_text(text: str) -> str:
    """Remove ANSI escape sequences, and replace other control characters with spaces.

    Tabs and line breaks stay.
    """
    if text.isprintable() or _CONTROL.search(text) is None:
        return text
    return _CONTROL.sub(" ", ANSI_SEQUENCE.sub("", text))


def cut(text: str, most: int) -> str:
    """Return at most `most` characters of a text, with an ellipsis for the rest."""
    return text if len(text) <= most else text[: most - 1] + "…"
