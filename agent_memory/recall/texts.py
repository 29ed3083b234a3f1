"""What recall asks about texts: whether one only asks, and whether questions are what a query is after (pure)."""

from __future__ import annotations

import re

_ASKS = re.compile(
    r"\b(?:ask(?:s|ed|ing)?|questions?|frag(?:e|en|st|te|test|ten)|gefragt|pregunt\w{1,8}|demand[ée]\w{0,4}|perguntei?|domand\w{1,6})\b|问|問|質問|聞い|물었|질문",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!。!]\s")


def asks_for_questions(query: str) -> bool:
    """Whether a query is after what was asked ("what did I ask you about the boat?")."""
    return _ASKS.search(query) is not None


def is_bare_question(text: str) -> bool:
    """Whether a text asks and states nothing."""
    stripped = text.rstrip()
    return stripped.endswith(("?", "?")) and _SENTENCE_END.search(stripped) is None and "," not in stripped
