"""The prompt for deciding how new notes change existing ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from pydantic import BaseModel, Field, ValidationError, field_validator

from agent_memory.foundation.llm.base import ChatMessage
from agent_memory.foundation.text.data_fences import DATA_RULE, fence

VERSION = "reconcile/2"

_TASK = """You keep a memory of short notes. New notes came in. For each of them decide what it does to the kept notes that are near it.

Actions:
- "NONE": a kept note says all of it already; `of` is that note.
- "UPDATE": the new note says everything that a kept note says, and more, or says it more exactly; `of` is that note.
- "SUPERSEDE": kept notes were true and are no longer, because of the new one; `of` are all of those.
- "ADD": anything else, also when in doubt.

Rules:
- Only notes about the same person or thing say the same or end each other.
- Of notes with one `slot` only one is true: a new one never is "ADD" beside a kept one.
- Events ("episodic") happened: nothing ends them, and two events on different days are two events.
- A note that tells of a preference, plan, home, employer or state that has changed ends the note of the former one.
- `of` has numbers ("k") from the new note's own `near` only.
- Each new note gets exactly one decision.
- {data_rule}

Answer with a JSON object: {{"decisions": [{{"n": 1, "action": "SUPERSEDE", "of": [2]}}, {{"n": 2, "action": "ADD", "of": []}}]}}"""
INSTRUCTIONS = (_TASK,)


@dataclass(frozen=True, slots=True)
class ExistingNote:
    """An existing note. `when` is when the event happened or the note became true."""

    text: str
    type: str
    when: str
    slot: str | None = None


@dataclass(frozen=True, slots=True)
class NewNote:
    """A new note. `near` contains the numbers (from 1) of similar existing notes."""

    text: str
    type: str
    when: str
    near: Sequence[int]
    slot: str | None = None


class DecisionAnswer(BaseModel):
    n: int
    action: Literal["ADD", "UPDATE", "SUPERSEDE", "NONE"]
    of: list[int] = Field(default=[], max_length=100)


class ReconcileAnswer(BaseModel):
    decisions: list[DecisionAnswer] = Field(max_length=1000)

    @field_validator("decisions", mode="before")
    @classmethod
    def _each_by_itself(cls, value: object) -> object:
        """Drop invalid decisions. Reject the response only if no decision is valid."""
        decisions = cast("list[object]", value) if isinstance(value, list) else []
        return [decision for decision in decisions if _is_decision(decision)] or value


def _is_decision(value: object) -> bool:
    try:
        DecisionAnswer.model_validate(value)
    except ValidationError:
        return False
    return True


def reconcile_notes(existing: Sequence[ExistingNote], incoming: Sequence[NewNote]) -> list[ChatMessage]:
    """Build the prompt. Existing and new notes are numbered separately, starting at 1."""

    def line(values: dict[str, Any]) -> str:
        return json.dumps({name: value for name, value in values.items() if value is not None}, ensure_ascii=False)

    existing_lines = [
        line({"k": k, "type": note.type, "when": note.when, "slot": note.slot, "text": note.text})
        for k, note in enumerate(existing, start=1)
    ]
    new_lines = [
        line({"n": n, "type": note.type, "when": note.when, "slot": note.slot, "near": list(note.near), "text": note.text})
        for n, note in enumerate(incoming, start=1)
    ]
    parts = [
        f"Kept notes, one JSON object per line:\n{fence(chr(10).join(existing_lines), 'kept')}",
        f"New notes, one JSON object per line:\n{fence(chr(10).join(new_lines), 'notes')}",
        'Now answer with one decision per new note under "decisions".',
    ]
    return [ChatMessage("system", _TASK.format(data_rule=DATA_RULE)), ChatMessage("user", "\n\n".join(parts))]
