"""Answers of searches before they are written: cards, and what is said beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent_memory.storage.cards import Card
from agent_memory.storage.codec import Turn
from agent_memory_client.models import ANSWER, AnswerExplanation, MemoryPromptResponse, MemoryRecordResultsResponse


@dataclass(frozen=True, slots=True)
class Page:
    """A page of memories; see MemoryRecordResultsResponse."""

    memories: Sequence[Card]
    total: int
    next_offset: int | None
    notices: Sequence[str]
    explanation: AnswerExplanation | None

    def values(self) -> dict[str, Any]:
        """The answer as JSON has it."""
        return {
            "memories": [card.values for card in self.memories],
            "total": self.total,
            "next_offset": self.next_offset,
            "notices": self.notices or None,
            "explanation": self.explanation,
        }

    def model(self) -> MemoryRecordResultsResponse:
        """As the wire model."""
        return MemoryRecordResultsResponse.model_validate(self.values(), context=ANSWER)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt; see MemoryPromptResponse."""

    messages: Sequence[dict[str, Any]]
    memories: Sequence[Card]
    notices: Sequence[str]
    explanation: AnswerExplanation | None

    def values(self) -> dict[str, Any]:
        """The answer as JSON has it."""
        return {
            "messages": self.messages,
            "long_term_memories": [card.values for card in self.memories] or None,
            "notices": self.notices or None,
            "explanation": self.explanation,
        }

    def model(self) -> MemoryPromptResponse:
        """As the wire model."""
        return MemoryPromptResponse.model_validate(self.values(), context=ANSWER)


def shown_turn(turn: Turn) -> dict[str, Any]:
    """A message of a session in a prompt: whatever is not the user's is the assistant's, and `original_role` says whose it was."""
    message = said("user" if turn.role == "user" else "assistant", turn.content)
    if turn.role not in ("user", "assistant"):
        message["original_role"] = turn.role
    if (beside := turn.beside) is not None:
        if "p" in beside:
            message["content_parts"] = beside["p"]
        if "n" in beside:
            message["no_content"] = beside["n"]
        message = {**beside.get("f", {}), **message}
    return message


def said(role: str, text: str) -> dict[str, Any]:
    """A message of a prompt."""
    return {"role": role, "content": {"type": "text", "text": text, "annotations": None, "_meta": None}}
