"""What of a text stands between quotation marks (pure)."""

from __future__ import annotations

import re

# Each kind closes with its own mark, on the same line. A single one opens behind no letter and closes before none: else it is an
# apostrophe.
_QUOTATION = re.compile(
    r'"[^"\n]*+"|“[^”“\n]*+[”“]|„[^„“”"\n]*+[“”"]|«[^«»\n]*+»|»[^«»\n]*+«|「[^「」\n]*+」|『[^『』\n]*+』|(?<!\w)‘[^‘’\n]*+’(?!\w)'
    r"|(?<!\w)'[^'\n]*+'(?!\w)"
)


def quotations(text: str) -> list[tuple[int, int]]:
    """Where quotations begin and end, marks included; what is opened and never closed is none."""
    return [m.span() for m in _QUOTATION.finditer(text)]


def without_quotations(text: str) -> str:
    """A text with a blank for each of its quotations."""
    return _QUOTATION.sub(" ", text)
