"""Count the tokens that model calls use."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from agent_memory.foundation.core.metrics import MODEL_TOKENS

# English text has about four characters a token.
_CHARS_PER_TOKEN = 4


@dataclass(slots=True)
class TokensUsed:
    tokens: int = 0


_METER: ContextVar[TokensUsed | None] = ContextVar("agent_memory.model_usage", default=None)


@contextmanager
def metering() -> Generator[TokensUsed]:
    """Count the tokens used by model calls in this `with` block, including failed calls."""
    used = TokensUsed()
    token = _METER.set(used)
    try:
        yield used
    finally:
        _METER.reset(token)


def number(reported: object) -> int:
    """Return the reported number if it is a positive integer, or else 0."""
    return reported if isinstance(reported, int) and not isinstance(reported, bool) and reported > 0 else 0


def note(reported: object, *, chars: int) -> None:
    """Add a call's reported tokens, or an estimate based on its `chars`."""
    tokens = number(reported) or -(-chars // _CHARS_PER_TOKEN)
    MODEL_TOKENS.inc(tokens)
    if (used := _METER.get()) is not None:
        used.tokens += tokens
