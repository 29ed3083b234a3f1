"""Unicode normalization of long texts (pure)."""

from __future__ import annotations

import unicodedata
from typing import Literal

# One call holds the interpreter's lock: a megabyte of U+FDFA, each of which becomes 18 characters, for a third of a second.
_SLICE = 8192


def normalized(form: Literal["NFC", "NFKC", "NFKD"], text: str) -> str:
    """Return a normalized text. Other threads run between slices of it, and what a combining mark begins stays as it is."""
    if len(text) <= _SLICE:
        return unicodedata.normalize(form, text)
    return "".join(unicodedata.normalize(form, text[start : start + _SLICE]) for start in range(0, len(text), _SLICE))
