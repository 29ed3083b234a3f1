"""A memory prompt before it is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent_memory.features.memories.shown_memories import ShownMemory
from agent_memory.features.recall.formats import FormattedPrompt
from agent_memory_client.models import ANSWER, AnswerExplanation, MemoryPromptResponse, SearchRequest


@dataclass(slots=True)
class Prompt:
    """A prompt; see MemoryPromptResponse. `search` is the search that brought its memories; `formatted` is the prompt in the format of an
    API, where the request names one."""

    messages: Sequence[dict[str, Any]]
    memories: Sequence[ShownMemory]
    notices: Sequence[str]
    explanation: AnswerExplanation | None
    search: SearchRequest | None = None
    formatted: FormattedPrompt | None = None

    def prompt_values(self) -> dict[str, Any]:
        """The answer as JSON has it."""
        values: dict[str, Any] = {
            "messages": self.messages,
            "long_term_memories": [card.values for card in self.memories] or None,
            "notices": self.notices or None,
            "explanation": self.explanation,
        }
        return values if self.formatted is None else values | self.formatted.values()

    def model(self) -> MemoryPromptResponse:
        """As the wire model."""
        return MemoryPromptResponse.model_validate(self.prompt_values(), context=ANSWER)


def text_message(role: str, text: str) -> dict[str, Any]:
    """A message of a prompt."""
    return {"role": role, "content": {"type": "text", "text": text, "annotations": None, "_meta": None}}
