"""Truncate text for display, and remove terminal control characters from text for search and prompts."""

from __future__ import annotations

import re

# Escape sequences of ECMA-48 (7-bit): colors, cursor movements, and strings such as titles and links. A string ends
# with its line, so that an unclosed one does not remove the rest of the text. Bytes such as 0x9b are left to
# `_CONTROL`: they are mostly letters decoded wrongly.
_ANSI_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]?|[\]PX^_][^\x07\x1b\n]*+(?:\x07|\x1b\\)|[ -/]*+[0-~]?)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def plain_text(text: str) -> str:
    """Return `text` without ANSI escape sequences.

    Other control characters become spaces, except tabs and line breaks.
    """
    if text.isprintable() or _CONTROL.search(text) is None:
        return text
    return _CONTROL.sub(" ", _ANSI_SEQUENCE.sub("", text))


def cut(text: str, most: int) -> str:
    """Return at most `most` characters of a text. An ellipsis replaces the rest."""
    return text if len(text) <= most else text[: most - 1] + "…"
