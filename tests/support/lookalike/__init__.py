"""A fake OpenAI server with deterministic responses and injectable faults."""

from __future__ import annotations

from tests.support.lookalike.answers import embed
from tests.support.lookalike.server import Lookalike

__all__ = ["Lookalike", "embed"]
