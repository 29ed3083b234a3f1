"""Convert long texts to a Unicode normalization form."""

from __future__ import annotations

import unicodedata
from typing import Literal

# A call holds the GIL. U+FDFA expands to 18 characters: a megabyte of it takes a third of a second.
_SLICE = 8192


def normalized(form: Literal["NFC", "NFKC", "NFKD"], text: str) -> str:
    # Combining marks at the boundary between two slices stay unchanged.
    if len(text) <= _SLICE:
        return unicodedata.normalize(form, text)
    return "".join(unicodedata.normalize(form, text[start : start + _SLICE]) for start in range(0, len(text), _SLICE))
