"""Create the prompt that turns a session into a procedure."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import BaseModel, Field, field_validator

from agent_memory.foundation.llm.base import ChatMessage
from agent_memory.foundation.text.data_fences import DATA_RULE, fence
from agent_memory_client.models.features import procedures as wire

VERSION = "procedure/1"
"""The prompt's version. Increase it whenever the prompt changes."""

_TASK = f"""You read a session of an agent that is over, and write down what a later agent should do in the same kind of situation.

Rules:
- "when_to_use": the kind of situation, in one sentence that such a request would resemble; no names, dates or values of this one session. \
Empty when there is nothing to learn.
- "steps": what to do, in order, one sentence each; tools by their names. Values of this one session become a word for what they are.
- "tools": the names of the tools that the steps use.
- "pitfalls": what did not work, and what to do instead.
- Of a session that succeeded, the steps are those that led there. Of one that failed, the steps are what was tried, and the pitfalls say \
why it failed.
- Known procedures ("k") come from like situations. When one is for the same kind of situation, give its number in "same": then steps and \
pitfalls are those of both together, compared: what succeeded counts more than what failed, and what only repeats is said once. Else null.
- Write in the language of the session. Take nothing from passwords, keys and other secrets, also not where "[redacted" stands for one.
- {DATA_RULE}

Answer with a JSON object: {{"when_to_use": "...", "steps": ["..."], "tools": ["..."], "pitfalls": ["..."], "same": null}}"""


class LearnedProcedure(BaseModel):
    when_to_use: str = Field(default="", description="The kind of situation, or an empty text.")
    steps: list[str] = Field(default=[], description="What to do, in order.")
    tools: list[str] = Field(default=[], description="Names of tools.")
    pitfalls: list[str] = Field(default=[], description="What did not work.")
    same: int | None = Field(default=None, description="The number of the known procedure for the same kind of situation, or null.")

    @field_validator("when_to_use")
    @classmethod
    def _bounded(cls, value: str) -> str:
        return " ".join(value.split())[: wire.MAX_SITUATION_CHARS]

    @field_validator("steps", "tools", "pitfalls")
    @classmethod
    def _lines(cls, values: list[str]) -> list[str]:
        lines = [" ".join(value.split())[: wire.MAX_STEP_CHARS] for value in values]
        return list(dict.fromkeys(line for line in lines if line))[: wire.MAX_STEPS]


def learn_procedure(
    session: Sequence[str], result: wire.SessionResultRequest, similar_procedures: Sequence[wire.ProcedureContent]
) -> list[ChatMessage]:
    """Return the messages for one model call. `session` contains JSON lines."""
    ended = {"result": result.result, "score": result.score, "comment": result.comment}
    parts = [
        f"The session, one JSON object per line:\n{fence(chr(10).join(session), 'session')}",
        f"How it ended:\n{fence(json.dumps(ended, ensure_ascii=False), 'result')}",
    ]
    if similar_procedures:
        lines = [
            json.dumps(
                {
                    "k": number,
                    "result": procedure.result,
                    "when_to_use": procedure.when_to_use,
                    "steps": procedure.steps or [procedure.text or ""],
                    "pitfalls": procedure.pitfalls,
                },
                ensure_ascii=False,
            )
            for number, procedure in enumerate(similar_procedures, start=1)
        ]
        parts.append(f"Known procedures, one JSON object per line:\n{fence(chr(10).join(lines), 'known')}")
    parts.append("Now write down the procedure.")
    return [ChatMessage("system", _TASK), ChatMessage("user", "\n\n".join(parts))]
