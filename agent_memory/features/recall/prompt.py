from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent_memory.features.memories.shown_memories import ShownMemory
from agent_memory.features.recall.formats import FormattedPrompt
from agent_memory_client.models import ANSWER, AnswerExplanation, MemoryPromptResponse, SearchRequest


@dataclass(slots=True)
class Prompt:
    """A prompt; see MemoryPromptResponse. `search` found its memories."""

    messages: Sequence[dict[str, Any]]
    memories: Sequence[ShownMemory]
    notices: Sequence[str]
    explanation: AnswerExplanation | None
    search: SearchRequest | None = None
    formatted: FormattedPrompt | None = None

    def prompt_values(self) -> dict[str, Any]:
        values: dict[str, Any] = {
            "messages": self.messages,
            "long_term_memories": [card.values for card in self.memories] or None,
            "notices": self.notices or None,
            "explanation": self.explanation,
        }
        return values if self.formatted is None else values | self.formatted.values()

    def model(self) -> MemoryPromptResponse:
        return MemoryPromptResponse.model_validate(self.prompt_values(), context=ANSWER)


def text_message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": {"type": "text", "text": text, "annotations": None, "_meta": None}}
