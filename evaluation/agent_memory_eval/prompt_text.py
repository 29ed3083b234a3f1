"""The text of a memory prompt as it arrives in the model, in the parts that checks are about (pure)."""

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
    """`memories` is what the system is told of other conversations, `summary` that of this one, `window` its messages without the question.

    `roles` are those of the messages, in order; a system text beside the messages is not among them. `system` says whether there is any.
    """

    memories: str
    summary: str
    window: str
    roles: Sequence[str]
    system: bool
    plain: bool

    @property
    def text(self) -> str:
        """All of it, but the question."""
        return "\n".join(part for part in (self.summary, self.memories, self.window) if part)

    @property
    def lines(self) -> list[str]:
        """The lines of the memories, without headings and the note below them."""
        return [line for line in self.memories.splitlines() if line.strip() not in _EMPTY and not line.lstrip().startswith("#")]

    def lines_with(self, text: str) -> list[str]:
        """The lines that hold a text."""
        return [line for line in self.lines if folded(text) in folded(line)]


def folded(text: str) -> str:
    """A text as texts are compared: without the difference of capitals and of blanks."""
    return " ".join(text.casefold().split())


def content_text(content: object) -> str:
    """The text of a message's content: a string, a block of text, or a list of those."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return str(cast("Mapping[str, Any]", content).get("text") or "")
    if isinstance(content, list):
        return "\n".join(content_text(part) for part in cast("list[object]", content))
    return ""


def read_prompt(answer: Mapping[str, Any], question: str = "") -> PromptText:
    """The parts of an answer of `POST /v1/memory/prompt` to a question, in any of its formats.

    The question ends the last message, which may begin with what the user said before it.
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
    """The summary under its heading, up to the next one, and the rest."""
    parts: dict[bool, list[str]] = {True: [], False: []}
    inside = False
    for line in system.splitlines():
        if line.lstrip().startswith("## "):
            inside = line.strip() == _SUMMARY
        parts[inside].append(line)
    # Letters of an id are nobody's words.
    return "\n".join(parts[True]), _ID.sub("", "\n".join(parts[False]))
