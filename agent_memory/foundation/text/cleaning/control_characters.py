"""Remove terminal control characters for search and prompts. Stored text keeps them."""

from __future__ import annotations

import re

# ECMA-48, 7-bit: colors, cursor movements, strings such as titles and links (within a line, so that an unclosed one
# does not take the text with it). Bytes such as 0x9b are mostly letters of a wrong decoding.
_ANSI_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]?|[\]PX^_][^\x07\x1b\n]*+(?:\x07|\x1b\\)|[ -/]*+[0-~]?)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def plain_text(text: str) -> str:
    """Return `text` without ANSI escape sequences, other control characters but tab and line breaks as spaces."""
    if text.isprintable() or _CONTROL.search(text) is None:
        return text
    return _CONTROL.sub(" ", _ANSI_SEQUENCE.sub("", text))
