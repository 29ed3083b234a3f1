"""A prompt in the format of an API: what memory says as one system text, the session's messages, and the query (pure).

Sections stand in a fixed order, what always holds first, so that the text of following turns begins alike for as long as what it says
stays the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from agent_memory_client.models import PromptFormat, prompt_messages, text_of

FORMAT_TOKENS = 24
"""Tokens of the headings that only formats have."""
_BEGINNING = "(Earlier messages of this conversation are left out.)"
_CONVERSATION, _QUERY = "## The conversation\n", "## The user's message\n"
_INSTRUCTIONS = frozenset({"system", "developer"})


@dataclass(frozen=True, slots=True)
class FormattedPrompt:
    """A prompt for an API; `system` and `text` are "" where there is none."""

    format: PromptFormat
    messages: Sequence[dict[str, Any]]
    system: str = ""
    text: str = ""
    relevant: bool = False

    def values(self) -> dict[str, Any]:
        """What the answer says of it, as JSON has it."""
        values: dict[str, Any] = {"messages": self.messages, "format": self.format, "relevant": self.relevant}
        return values | {name: text for name, text in (("system", self.system), ("text", self.text)) if text}


def format_prompt(wanted: PromptFormat, parts: Sequence[str], messages: Sequence[Mapping[str, Any]], query: str) -> FormattedPrompt:
    """A prompt of what memory says (`parts`, none of them empty), of a session's messages as `turn_message` makes them, and of the query.

    What a session holds of its program's instructions begins the system text: no API takes them in the middle.
    """
    chat = [{**message, "content": text_of(message.get("content"))} for message in prompt_messages({"messages": messages})]
    instructions = [message["content"] for message in chat if message["role"] in _INSTRUCTIONS and message["content"].strip()]
    turns = [message for message in chat if message["role"] not in _INSTRUCTIONS]
    system = "\n\n".join([*instructions, *parts])
    relevant = bool(parts)
    if wanted == "text":
        return FormattedPrompt(wanted, (), text=_as_text(system, turns, query), relevant=relevant)
    if wanted == "anthropic":
        return FormattedPrompt(wanted, _in_turns([*turns, _user(query)]), system=system, relevant=relevant)
    first = [{"role": "system", "content": system}] if system else []
    return FormattedPrompt(wanted, [*first, *turns, _user(query)], relevant=relevant)


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _as_text(system: str, turns: Sequence[Mapping[str, Any]], query: str) -> str:
    lines = [f"{turn.get('name') or turn['role']}: {text}" for turn in turns if (text := _plain_text(turn))]
    conversation = _CONVERSATION + "\n".join(lines) if lines else ""
    return "\n\n".join(part for part in (system, conversation, _QUERY + query if system or lines else query) if part)


def _in_turns(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages of user and assistant in turns, of which the first and the last are the user's."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        role, text = ("user" if message["role"] == "user" else "assistant"), _plain_text(message)
        if not text.strip():
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += f"\n\n{text}"
        else:
            turns.append({"role": role, "content": text})
    return turns if not turns or turns[0]["role"] == "user" else [_user(_BEGINNING), *turns]


def _plain_text(message: Mapping[str, Any]) -> str:
    """A message as text alone: with its calls of tools, and marked as an answer of one where it is that."""
    text = str(message["content"])
    if message["role"] in ("tool", "function"):
        return f"[answer of a tool] {text}"
    calls = [_call(call) for call in cast("list[Any]", message.get("tool_calls") or [])]
    return "\n".join(filter(None, [text, *calls]))


def _call(call: Any) -> str:
    function: Any = call.get("function") if isinstance(call, Mapping) else None  # pyright: ignore[reportUnknownMemberType]
    if not isinstance(function, Mapping):
        return f"[call of a tool] {json.dumps(call, ensure_ascii=False)}"
    named = cast("Mapping[str, Any]", function)
    return f"[call of a tool] {named.get('name')}({named.get('arguments') or ''})"
