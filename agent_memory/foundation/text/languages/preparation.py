"""Compile the phrases of all languages before the first request."""

from __future__ import annotations

from agent_memory.foundation.text.languages.filler import is_filler
from agent_memory.foundation.text.languages.memory_requests import memory_request
from agent_memory.foundation.text.languages.questions import is_about_everything, is_bare_question


def compile_phrases() -> None:
    """Compile all patterns, which would otherwise block the first request for 0.5 s."""
    for read in (is_filler, memory_request, is_bare_question, is_about_everything):
        read("What do you know about me, and did I tell you that I moved to Rome?")
