"""Truncate text, and remove terminal control characters."""

from __future__ import annotations

import re

from agent_memory_client.models._types import ANSI_SEQUENCE

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def plain_text(text: str) -> str:
    """Remove ANSI escape sequences, and replace other control characters with spaces.

    Keep tabs and line breaks.
    """
    if text.isprintable() or _CONTROL.search(text) is None:
        return text
    return _CONTROL.sub(" ", ANSI_SEQUENCE.sub("", text))


def cut(text: str, most: int) -> str:
    """Truncate text to `most` characters, ending with an ellipsis if anything was cut."""
    return text if len(text) <= most else text[: most - 1] + "…"
