"""What every server compiles at its start: the process that `warm` forks has it already."""

from __future__ import annotations

from agent_memory.foundation.text.languages.preparation import compile_phrases

compile_phrases()
