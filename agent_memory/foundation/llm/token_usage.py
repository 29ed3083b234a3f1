"""How many tokens the calls of a model took: noted where an answer arrives, added up by whoever pays."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

# English text has about four characters to a token.
_CHARS_PER_TOKEN = 4


@dataclass(slots=True)
class TokensUsed:
    """Tokens that were used so far, of prompts and answers."""

    tokens: int = 0


_METER: ContextVar[TokensUsed | None] = ContextVar("agent_memory.model_usage", default=None)


@contextmanager
def metering() -> Generator[TokensUsed]:
    """Adds up what the calls within use, repairs and failed ones included."""
    used = TokensUsed()
    token = _METER.set(used)
    try:
        yield used
    finally:
        _METER.reset(token)


def note(reported: object, *, chars: int) -> None:
    """Notes a call: the tokens that its server reports, or an estimate of prompt and answer (`chars` characters) when it reports none."""
    used = _METER.get()
    if used is not None:
        is_count = isinstance(reported, int) and not isinstance(reported, bool) and reported > 0
        used.tokens += reported if is_count else -(-chars // _CHARS_PER_TOKEN)  # pyright: ignore[reportOperatorIssue]
