"""Format a prompt for an API. Pure functions, no I/O.

The sections that change least come first, so that successive prompts share a prefix.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from agent_memory.features.memories.shown_memories import ShownMemory
from agent_memory_client.models import (
    ANSWER,
    AnswerExplanation,
    MemoryPromptResponse,
    PromptFormat,
    SearchRequest,
    prompt_messages,
    text_of,
)

FORMAT_TOKENS = 24
_BEGINNING = "(Earlier messages of this conversation are left out.)"
_CONVERSATION, _QUERY = "## The conversation\n", "## The user's message\n"
_INSTRUCTIONS = frozenset({"system", "developer"})


@dataclass(frozen=True, slots=True)
class FormattedPrompt:
    format: PromptFormat
    messages: Sequence[dict[str, Any]]
    system: str = ""
    text: str = ""
    relevant: bool = False

    def values(self) -> dict[str, Any]:
        values: dict[str, Any] = {"messages": self.messages, "format": self.format, "relevant": self.relevant}
        return values | {name: text for name, text in (("system", self.system), ("text", self.text)) if text}


def format_prompt(api: PromptFormat, parts: Sequence[str], messages: Sequence[Mapping[str, Any]], query: str) -> FormattedPrompt:
    """Build a prompt for an API from memory texts (`parts`), messages and the query.

    System messages from the session go at the start of the system text.
    """
    chat = [{**message, "content": text_of(message.get("content"))} for message in prompt_messages({"messages": messages})]
    instructions = [message["content"] for message in chat if message["role"] in _INSTRUCTIONS and message["content"].strip()]
    turns = [message for message in chat if message["role"] not in _INSTRUCTIONS]
    system = "\n\n".join([*instructions, *parts])
    relevant = bool(parts)
    if api == "text":
        return FormattedPrompt(api, (), text=_as_text(system, turns, query), relevant=relevant)
    if api == "anthropic":
        return FormattedPrompt(api, _in_turns([*turns, _user(query)]), system=system, relevant=relevant)
    first = [{"role": "system", "content": system}] if system else []
    return FormattedPrompt(api, [*first, *turns, _user(query)], relevant=relevant)


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _as_text(system: str, turns: Sequence[Mapping[str, Any]], query: str) -> str:
    lines = [f"{turn.get('name') or turn['role']}: {text}" for turn in turns if (text := _plain_text(turn))]
    conversation = _CONVERSATION + "\n".join(lines) if lines else ""
    return "\n\n".join(part for part in (system, conversation, _QUERY + query if system or lines else query) if part)


def _in_turns(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Merge consecutive messages with the same role, so that user and assistant alternate."""
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


@dataclass(slots=True)
class Prompt:
    """A prompt with the fields of MemoryPromptResponse and the `search` that was run."""

    messages: Sequence[dict[str, Any]]
    memories: Sequence[ShownMemory]
    notices: Sequence[str]
    explanation: AnswerExplanation | None
    search: SearchRequest | None = None
    formatted: FormattedPrompt | None = None

    def prompt_values(self) -> dict[str, Any]:
        values: dict[str, Any] = {
            "messages": self.messages,
            "long_term_memories": [card.values for card in self.memories] or None,
            "notices": self.notices or None,
            "explanation": self.explanation,
        }
        return values if self.formatted is None else values | self.formatted.values()

    def model(self) -> MemoryPromptResponse:
        return MemoryPromptResponse.model_validate(self.prompt_values(), context=ANSWER)


def text_message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": {"type": "text", "text": text, "annotations": None, "_meta": None}}
