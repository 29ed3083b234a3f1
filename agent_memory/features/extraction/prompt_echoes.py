"""Recognize our own instructions in a model's facts (pure)."""

from __future__ import annotations

from functools import lru_cache

from agent_memory.features.extraction import prompts, reconcile_prompts, thread_prompts
from agent_memory.foundation.text.data_fences import DATA_RULE
from agent_memory.foundation.text.prompt_marks import DATA_NOTE
from agent_memory.foundation.text.terms import words

# Fewer words may match by chance.
_LEAST_WORDS = 5


def repeats_instructions(text: str) -> bool:
    """True if a text is a passage of our prompts, ignoring case and punctuation."""
    said = words(text)
    return len(said) >= _LEAST_WORDS and f" {' '.join(said)} " in _instructions()


@lru_cache(maxsize=1)
def _instructions() -> str:
    parts = [*prompts.INSTRUCTIONS, *reconcile_prompts.INSTRUCTIONS, *thread_prompts.INSTRUCTIONS, DATA_RULE, DATA_NOTE]
    return " ".join(["", *(word for part in parts for word in words(part)), ""])
