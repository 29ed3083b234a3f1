"""The prompt that takes facts worth remembering out of messages (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, cast

from pydantic import BaseModel, Field, field_validator

from agent_memory.llm.base import ChatMessage
from agent_memory.prompts.escape import DATA_RULE, PromptMessage, fence, message_lines

_TASK = """You read new messages of a conversation and write down the facts that are worth remembering in later conversations.

Rules:
- One fact per entry, each understandable on its own years later: no "he", "there" or "the project" whose meaning is only in the \
conversation. Name the person; the user is "User" unless the conversation names them.
- Say whose fact it is: what the user said of themselves, what the user said of others, what the assistant recommended or promised.
- Make relative dates absolute, each against its own message's time ("at"): "yesterday" in a message of 2024-03-05 is 2024-03-04.
- type "semantic": lasting facts (preferences, relations, skills, plans, properties). type "episodic": things that happened or will happen \
at a time; give `event_date` as an ISO 8601 date or date-time when it is known, else null.
- `topics`: up to 5 short keywords; `entities`: names of people, places, products, organizations in the fact. No commas inside them.
- `messages`: the numbers ("n") of the new messages that the fact comes from.
- No greetings, small talk, general knowledge, or the assistant's wording. Nothing that is not said. At most {max_facts} facts; none is \
a good answer.
- Write in the language of the messages.
- Context messages are only there to understand the new ones: take no fact from them.
- {data_rule}

Answer with a JSON object: {{"memories": [{{"text": "...", "type": "semantic", "topics": ["..."], "entities": ["..."], "event_date": null, \
"messages": [1]}}]}}. When nothing is worth remembering: {{"memories": []}}"""


class ExtractedFact(BaseModel):
    """One fact that stands on its own."""

    text: str = Field(min_length=1, max_length=4000)
    type: Literal["semantic", "episodic"] = "semantic"
    topics: list[str] = []
    entities: list[str] = []
    event_date: str | None = Field(default=None, description="ISO 8601 date or date-time, or null.")
    messages: list[int] = Field(default=[], description="Numbers of the new messages that the fact comes from.")

    @field_validator("text")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value.strip()

    @field_validator("type", mode="before")
    @classmethod
    def _known_type(cls, value: object) -> object:
        """A type that does not exist says nothing about the fact."""
        return value if value in ("semantic", "episodic") else "semantic"

    @field_validator("messages", mode="before")
    @classmethod
    def _numbers(cls, value: object) -> list[int]:
        """What cites nothing is left out; the caller falls back on all messages of the call."""
        if not isinstance(value, list):
            return []
        items = cast("list[object]", value)
        return [item for item in items if isinstance(item, int) and not isinstance(item, bool)]

    @field_validator("topics", "entities", mode="before")
    @classmethod
    def _short_tags(cls, value: object) -> object:
        """Tags as they are stored: no commas, no blanks, no doubles, bounded; null is none."""
        if value is None:
            return []
        if not isinstance(value, list):
            return value
        items = cast("list[object]", value)
        tags = [" ".join(str(tag).replace(",", " ").split())[:128] for tag in items if isinstance(tag, str | int | float)]
        return list(dict.fromkeys(tag for tag in tags if tag))[:10]

    @field_validator("event_date", mode="before")
    @classmethod
    def _iso_or_none(cls, value: object) -> object:
        """A date that is none ("unknown", "last spring") is left out rather than costing the fact."""
        try:
            return datetime.fromisoformat(value.strip()).isoformat() if isinstance(value, str) else None
        except ValueError:
            return None


class ExtractionAnswer(BaseModel):
    """What the model answers."""

    memories: list[ExtractedFact] = Field(max_length=200)


def extract_messages(new: Sequence[PromptMessage], *, context: Sequence[PromptMessage] = (), max_facts: int = 50) -> list[ChatMessage]:
    """The messages of one call: facts from `new`, understood with `context` (the messages just before; the caller bounds them)."""
    parts: list[str] = []
    if context:
        parts.append(f"Context messages (understand only, one JSON object per line):\n{fence(message_lines(context), 'context')}")
    parts.append(f"New messages (one JSON object per line):\n{fence(message_lines(new), 'messages')}")
    parts.append('Now answer with the facts of the new messages under "memories".')
    return [ChatMessage("system", _TASK.format(max_facts=max_facts, data_rule=DATA_RULE)), ChatMessage("user", "\n\n".join(parts))]
