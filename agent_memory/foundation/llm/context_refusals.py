"""Recognize errors about context windows, and extract their token counts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent_memory.foundation.core.tables import read_table

_READ = 4000  # characters to read from a refusal


@dataclass(frozen=True, slots=True)
class ContextOverflow:
    """The server's limit and its token count. None means that the server did not report it."""

    limit: int | None = None
    sent: int | None = None


_SOURCE = read_table("llm/data/context_refusals.toml")
_SAYS = re.compile("|".join(_SOURCE["refusals"]), re.IGNORECASE)
# An exceeded rate limit is not an overflow, unless a single request exceeds it.
_ALONE_TOO_LARGE = re.compile(r"request too large for", re.IGNORECASE)
_LIMITS = tuple(re.compile(pattern, re.IGNORECASE) for pattern in _SOURCE["limits"])
_SENT = tuple(re.compile(pattern, re.IGNORECASE) for pattern in _SOURCE["sent"])


def overflow(status: int, text: str) -> ContextOverflow | None:
    """Return the token counts in a context window error, or None for other errors."""
    text = text[:_READ]
    wordings = _ALONE_TOO_LARGE if status == 429 else _SAYS
    if wordings.search(text) is None:
        return ContextOverflow() if status == 413 else None
    limit, sent = _first(_LIMITS, text), _first(_SENT, text)
    return ContextOverflow(limit, sent)


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
    for pattern in patterns:
        match = pattern.search(text)
        if match is not None and (value := int(match[1][:12])) > 0:
            return value
    return None
