"""The prompt for the "summary" strategy, which maintains one memory per session."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, tzinfo

from pydantic import BaseModel, Field, field_validator

from agent_memory.features.extraction.prompts import ExtractedFact
from agent_memory.foundation.llm.base import ChatMessage
from agent_memory.foundation.text.data_fences import DATA_RULE, PromptMessage, described_pictures, fence, message_lines

VERSION = "thread/1"

_TASK = """You keep the summary of one conversation for later conversations. Write the new summary from the one so far (if there is one) \
and the new messages.

Rules:
- At most {max_words} words; facts rather than phrases, without greetings and small talk.
- Keep names, dates, places, numbers, decisions, preferences, open questions and open tasks. Give dates as dates: "yesterday" means the \
day before the message's own time ("at", {zone}).
- Keep what the summary so far says unless a new message changes it.
- Say who said or did what; jokes, sarcasm and hypotheticals are none of it. No passwords, keys or other secrets.{extra}
- `topics`: up to 5 short keywords.
- Write in {language}. Add nothing that is not there.
- {data_rule}

Answer with a JSON object: {{"summary": "the new summary", "topics": ["..."]}}"""
INSTRUCTIONS = (_TASK,)


class ThreadSummary(BaseModel):
    summary: str = Field(min_length=1, max_length=60_000)
    topics: list[str] = []

    @field_validator("topics", mode="before")
    @classmethod
    def _short_tags(cls, value: object) -> object:
        return ExtractedFact.model_validate({"text": "-", "topics": value}).topics


def summarize_thread(
    previous: str | None,
    new: Sequence[PromptMessage],
    *,
    max_words: int,
    instructions: Sequence[str] = (),
    zone: tzinfo = UTC,
    language: str | None = None,
) -> list[ChatMessage]:
    """Build the prompt. `new` must be sorted oldest first."""
    parts = [f"New messages, one JSON object per line:{described_pictures(new)}\n{fence(message_lines(new, zone), 'messages')}"]
    if previous and previous.strip():
        parts.insert(0, f"Summary so far:\n{fence(previous.strip(), 'summary')}")
    parts.append(f"Now write the new summary, at most {max_words} words.")
    system = _TASK.format(
        max_words=max_words,
        zone=str(zone),
        extra="".join(f"\n- {instruction}" for instruction in instructions),
        language=language or "the language of the conversation",
        data_rule=DATA_RULE,
    )
    return [ChatMessage("system", system), ChatMessage("user", "\n\n".join(parts))]
