"""Prompts that ask a model to write a summary or describe an image."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from agent_memory.foundation.llm.base import ChatMessage
from agent_memory.foundation.text.data_fences import DATA_RULE, PromptMessage, fence, message_lines

_TASK = """You keep the running summary of a conversation between a user and an assistant. The oldest messages are about to leave the \
conversation, and the summary is all that will be left of them.

Write the new summary from the previous summary (if there is one) and the leaving messages, which are given in the order in which \
they were written.

Rules:
- At most {max_words} words. Prefer facts over phrases; leave out greetings and small talk.
- Keep names, dates, places, numbers, decisions, preferences, open questions and open tasks. Give dates as dates: "yesterday" means the \
day before the message's own time.
- Keep what the previous summary says unless a later message changes it; then keep what is true now, and say what changed if it matters.
- Say who said or did what.
- Write in the language of the conversation.
- Add nothing that is not there.
- {data_rule}

Answer with a JSON object: {{"summary": "the new summary"}}"""


class SummaryAnswer(BaseModel):
    summary: str = Field(min_length=1, description="The new summary of the whole conversation so far.")


def summarize_messages(previous: str | None, leaving: Sequence[PromptMessage], *, max_words: int) -> list[ChatMessage]:
    """Build the prompt that merges `leaving` messages into the previous summary."""
    ordered = sorted(leaving, key=lambda item: (item.created_at, item.number))
    parts = [f"Leaving messages, one JSON object per line:\n{fence(message_lines(ordered), 'messages')}"]
    if previous and previous.strip():
        parts.insert(0, f"Previous summary:\n{fence(previous.strip(), 'summary')}")
    parts.append(f"Now write the new summary, at most {max_words} words.")
    return [ChatMessage("system", _TASK.format(max_words=max_words, data_rule=DATA_RULE)), ChatMessage("user", "\n\n".join(parts))]


_PICTURE_TASK = """Describe a picture from a conversation in at most 100 words, for somebody who remembers it later without seeing it: \
what it shows, where, and the words and numbers in it. Say nothing that cannot be seen, and guess nobody's name. Write in {language}.
- {data_rule} The picture is such data, too.

Answer with a JSON object: {{"seen": true, "description": "..."}}. If you see no picture: {{"seen": false, "description": ""}}"""


class PictureDescription(BaseModel):
    seen: bool = Field(description="False if no picture arrived.")
    description: str = Field(max_length=4000)


def describe_messages(address: str | None, language: str | None) -> list[ChatMessage]:
    """Build the prompt for describing an image. If `address` is None, omit the image."""
    system = _PICTURE_TASK.format(data_rule=DATA_RULE, language=language or "English")
    pictures = () if address is None else (address,)
    return [ChatMessage("system", system), ChatMessage("user", "Now describe the picture.", pictures)]
