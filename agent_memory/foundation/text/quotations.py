"""Find or remove quotations in a text."""

from __future__ import annotations

import re

# A quotation ends on the same line. A single quote next to a letter is an apostrophe.
_QUOTATION = re.compile(
    r'"[^"\n]*+"|“[^”“\n]*+[”“]|„[^„“”"\n]*+[“”"]|«[^«»\n]*+»|»[^«»\n]*+«|「[^「」\n]*+」|『[^『』\n]*+』|(?<!\w)‘[^‘’\n]*+’(?!\w)'
    r"|(?<!\w)'[^'\n]*+'(?!\w)"
)


def quotations(text: str) -> list[tuple[int, int]]:
    """Return the spans of closed quotations, including their quotation marks."""
    return [m.span() for m in _QUOTATION.finditer(text)]


def without_quotations(text: str) -> str:
    """Replace each quotation with a space."""
    return _QUOTATION.sub(" ", text)
