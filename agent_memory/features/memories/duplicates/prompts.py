"""The prompt for finding memories that say the same thing."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import BaseModel, Field

from agent_memory.foundation.llm.base import ChatMessage
from agent_memory.foundation.text.data_fences import DATA_RULE, fence

_TASK = """You look through pairs of short notes that a memory keeps. For each pair decide whether note "b" can be thrown away because \
note "a" says everything that it says.

Rules:
- Only when both are about the same person or thing, and nothing would be lost: no name, place, date, number, degree, condition or reason.
- Notes that contradict each other, or tell of different times or occasions, both stay.
- When in doubt, both stay.
- {data_rule}

Answer with a JSON object that lists the numbers ("n") of the pairs whose "b" can be thrown away: {{"same": [2, 5]}}. None is a good \
answer: {{"same": []}}"""


class RepeatsAnswer(BaseModel):
    same: list[int] = Field(description="Numbers of the pairs whose second note can be thrown away.")


def find_repeats(pairs: Sequence[tuple[str, str]]) -> list[ChatMessage]:
    """Build a prompt that asks which pairs, numbered from 1, say the same thing."""
    lines = "\n".join(json.dumps({"n": n, "a": a, "b": b}, ensure_ascii=False) for n, (a, b) in enumerate(pairs, start=1))
    prompt = f'Pairs, one JSON object per line:\n{fence(lines, "pairs")}\n\nNow answer with the numbers under "same".'
    return [ChatMessage("system", _TASK.format(data_rule=DATA_RULE)), ChatMessage("user", prompt)]
