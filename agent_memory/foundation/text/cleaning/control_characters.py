"""Text without the characters that control a terminal, for search and for prompts (pure). What is stored keeps them."""

from __future__ import annotations

import re

# ECMA-48 in its form of seven bits: colors and cursor movements, strings such as titles and links (within a line: one that never ends
# must not take the text with it), and what else begins with an escape. A byte such as 0x9b is mostly a letter of a wrongly decoded text.
_ANSI_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]?|[\]PX^_][^\x07\x1b\n]*+(?:\x07|\x1b\\)|[ -/]*+[0-~]?)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def plain_text(text: str) -> str:
    """`text` without ANSI escape sequences, and with a space for each other control character but tab and line breaks."""
    if text.isprintable() or _CONTROL.search(text) is None:
        return text
    return _CONTROL.sub(" ", _ANSI_SEQUENCE.sub("", text))
