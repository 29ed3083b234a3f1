"""Split a memory prompt into the parts that the checks examine."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from agent_memory.foundation.text.prompt_marks import DATA_NOTE, NO_MEMORIES, SUMMARY_HEAD

_SUMMARY = SUMMARY_HEAD.strip()
_ID = re.compile(r"\(ID: [^()\n]*\)")
_EMPTY = frozenset({"", NO_MEMORIES, DATA_NOTE.strip()})


@dataclass(frozen=True, slots=True)
class PromptText:
    """The parts of a prompt.

    `memories` is the system text about other conversations, and `summary` is the system text about
    this one. `window` contains this conversation's messages except the question. `roles` lists the
    message roles in order. `system` is True if there is any system text.
    """

    memories: str
    summary: str
    window: str
    roles: Sequence[str]
    system: bool
    plain: bool

    @property
    def text(self) -> str:
        """The full prompt text without the question."""
        return "\n".join(part for part in (self.summary, self.memories, self.window) if part)

    @property
    def lines(self) -> list[str]:
        """The memory lines, without headings and the note below the memories."""
        return [line for line in self.memories.splitlines() if line.strip() not in _EMPTY and not line.lstrip().startswith("#")]

    def lines_with(self, text: str) -> list[str]:
        """Return the memory lines that contain the text."""
        return [line for line in self.lines if folded(text) in folded(line)]


def folded(text: str) -> str:
    """Case-fold a text and collapse its whitespace, for comparisons."""
    return " ".join(text.casefold().split())


def content_text(content: object) -> str:
    """Return the text of a message's content, which can be a string, a text block or a list."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return str(cast("Mapping[str, Any]", content).get("text") or "")
    if isinstance(content, list):
        return "\n".join(content_text(part) for part in cast("list[object]", content))
    return ""


def read_prompt(answer: Mapping[str, Any], question: str = "") -> PromptText:
    """Parse a response from `POST /v1/memory/prompt`, in any format.

    Remove `question` from the end of the last message.
    """
    messages = cast("Sequence[Mapping[str, Any]]", answer.get("messages") or ())
    pairs = [(str(message["role"]), content_text(message.get("content"))) for message in messages]
    system_texts = [text for role, text in pairs if role in ("system", "developer")]
    beside = content_text(answer.get("system"))
    text = answer.get("text")
    plain = isinstance(text, str) and not pairs
    system_texts += [beside, str(text).strip().removesuffix(question.strip()).rstrip() if plain else ""]
    summary, memories = _parted("\n".join(filter(None, system_texts)))
    turn_texts = [text for role, text in pairs if role not in ("system", "developer")]
    if turn_texts:
        turn_texts[-1] = turn_texts[-1].strip().removesuffix(question.strip())
    window = "\n".join(turn_texts)
    return PromptText(memories, summary, window, [role for role, _ in pairs], any(filter(None, system_texts)), plain)


def _parted(system: str) -> tuple[str, str]:
    """Split system text into the summary section and everything else."""
    parts: dict[bool, list[str]] = {True: [], False: []}
    inside = False
    for line in system.splitlines():
        if line.lstrip().startswith("## "):
            inside = line.strip() == _SUMMARY
        parts[inside].append(line)
    # Remove ids, because the letters in them could match a check.
    return "\n".join(parts[True]), _ID.sub("", "\n".join(parts[False]))
