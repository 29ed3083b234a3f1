"""Create the prompt that summarizes a partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, Field

from agent_memory.foundation.llm.base import ChatMessage
from agent_memory.foundation.text.data_fences import DATA_RULE, PromptMessage, fence, message_lines

_TASK = f"""You summarize stored memories: facts, events and messages that were kept from conversations. Each has the time at which it was \
said ("at"), what it is or who said it ("role"), and its text.

Rules:
- Keep names, dates, places, numbers, decisions, preferences, open questions and open tasks. Give dates as dates.
- Where memories contradict each other, the later one holds; say what changed if it matters.
- Say each thing once. Write in the language of the memories.
- Add nothing that is not there.
- {DATA_RULE}"""

_ANSWER = 'Answer with a JSON object: {"summary": "the summary"}'


class ViewSummary(BaseModel):
    summary: str = Field(min_length=1, description="The summary of the memories.")


def summarize_group(
    memories: Sequence[PromptMessage], group: Mapping[str, str], *, instructions: str | None, max_words: int
) -> list[ChatMessage]:
    """Return the messages for one model call. `instructions` come from the view."""
    instruction_text = f"\n\nInstructions for this summary:\n{instructions.strip()}" if instructions and instructions.strip() else ""
    system = f"{_TASK}{instruction_text}\n\nAt most {max_words} words. {_ANSWER}"
    ordered = sorted(memories, key=lambda item: (item.created_at, item.number))
    parts = [f"Memories, one JSON object per line:\n{fence(message_lines(ordered), 'memories')}"]
    if group:
        group_lines = "\n".join(f"{name}: {value}" for name, value in sorted(group.items()))
        parts.insert(0, f"All of them belong to this group:\n{fence(group_lines, 'group')}")
    parts.append(f"Now write the summary, at most {max_words} words.")
    return [ChatMessage("system", system), ChatMessage("user", "\n\n".join(parts))]
