"""Create the prompt that summarizes a period."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field

from agent_memory.extensions.timeline.summaries.digest import shown_days
from agent_memory.foundation.llm.base import ChatMessage
from agent_memory.foundation.text.data_fences import DATA_RULE, fence

_TASK = f"""You summarize what happened to a person in a {{unit}}. You are given events, or summaries of days, each with its days \
("at"), who told it ("role"), and its text.

Rules:
- Say what happened, with its dates and who told it. What matters most to the person comes first.
- Keep names, places and numbers. Words such as "yesterday" in an event are of the time when it was told: only "at" says when it happened.
- Say each thing once. Write in the language of the events. Add nothing that is not there.
- {DATA_RULE}

At most {{words}} words. Answer with a JSON object: {{{{"summary": "the summary"}}}}"""


class PeriodAnswer(BaseModel):
    summary: str = Field(min_length=1, description="The summary of the events.")


def event_lines(events: Sequence[dict[str, Any]], days: Sequence[tuple[str, str]] = ()) -> list[str]:
    """Format day summaries (name, text) and events as JSON lines."""
    rows = [{"at": name, "role": "summary", "text": text} for name, text in days]
    rows += [{"at": shown_days(event), "role": event.get("who") or "user", "text": event["text"]} for event in events]
    return [json.dumps({"n": number, **row}, ensure_ascii=False) for number, row in enumerate(rows, start=1)]


def summarize_period(unit: str, name: str, lines: Sequence[str], *, max_words: int) -> list[ChatMessage]:
    system = _TASK.format(unit=unit, words=max_words)
    prompt = f"Events of {name}, one JSON object per line:\n{fence(chr(10).join(lines), 'events')}\n\nNow write the summary of {name}."
    return [ChatMessage("system", system), ChatMessage("user", prompt)]
