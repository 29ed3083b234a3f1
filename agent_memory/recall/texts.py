"""What recall asks about queries: whether questions are what one is after (pure)."""

from __future__ import annotations

import re

_ASKS = re.compile(
    r"\b(?:ask(?:s|ed|ing)?|questions?|frag(?:e|en|st|te|test|ten)|gefragt|pregunt\w{1,8}|demand[ée]\w{0,4}|perguntei?|domand\w{1,6})\b|问|問|質問|聞い|물었|질문",
    re.IGNORECASE,
)


def asks_for_questions(query: str) -> bool:
    """Whether a query is after what was asked ("what did I ask you about the boat?")."""
    return _ASKS.search(query) is not None
