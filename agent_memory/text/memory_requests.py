"""Requests to the memory itself: "remember that …", "please forget …" (pure)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

RequestKind = Literal["remember", "forget"]
_MOST_CHARS = 4000
_REQUEST = re.compile(
    r"(?:please|bitte)?[\s,]*(?P<verb>forget|remember|vergiss)\s+(?:that\s+|dass\s+|about\s+)?(?P<what>.+)", re.IGNORECASE | re.DOTALL
)


class MemoryRequest(NamedTuple):
    """What is asked of the memory, and about what: in the words of who asks."""

    kind: RequestKind
    subject: str


@lru_cache(maxsize=256)
def memory_request(text: str) -> MemoryRequest | None:
    """The request to the memory that a whole text is, or None."""
    match = _REQUEST.fullmatch(text.strip()) if len(text) <= _MOST_CHARS else None
    if match is None or re.search(r"[.!?]\s", match["what"]):
        return None
    subject = match["what"].rstrip(" .!,")
    return MemoryRequest("remember" if match["verb"].lower() == "remember" else "forget", subject) if subject else None
