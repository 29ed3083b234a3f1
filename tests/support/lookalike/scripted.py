"""Script a model's responses, selected by text in the prompt."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

_KEPT = re.compile(r'^\{"k": ?\d+.*\}$', re.MULTILINE)
_NEW = re.compile(r'^\{"n": ?\d+.*\}$', re.MULTILINE)
_CONTEXT = re.compile(r"<(context-\w+)>.*?</\1>", re.DOTALL)
_SUMMARY = re.compile(r"<(summary-\w+)>\n(.*?)\n</\1>", re.DOTALL)


@dataclass
class Scripted:
    """Scripted responses for the look-alike, selected by text in the prompt.

    `facts` maps a new message's text to its facts, which cite that message by default.
    `decisions` maps a new fact's text to its action (default: ADD) and the affected facts' texts.
    `raw` maps a text in the prompt to the complete answer. `calls` maps a text in the last message
    to tool calls (name, arguments). `silent` returns no facts for unscripted messages.
    """

    facts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    decisions: dict[str, list[str]] = field(default_factory=dict)
    raw: dict[str, str] = field(default_factory=dict)
    calls: dict[str, list[tuple[str, dict[str, Any]]]] = field(default_factory=dict)
    silent: bool = False

    def answer(self, prompt: str) -> str | None:
        """Return the scripted response, or None if the look-alike should generate one."""
        for text, answer in self.raw.items():
            if text in _CONTEXT.sub("", prompt):
                return answer
        if '"decisions"' in prompt and (self.decisions or self.silent):
            return json.dumps({"decisions": self._decisions(prompt)}, ensure_ascii=False)
        if '"memories"' in prompt and (self.facts or self.silent):
            found = self._facts(prompt)
            return json.dumps({"memories": found}, ensure_ascii=False) if found or self.silent else None
        return None

    def tool_calls(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the scripted tool calls for these messages."""
        last = str(messages[-1].get("content")) if messages else ""
        calls = next((calls for text, calls in self.calls.items() if text in last), [])
        return [
            {"id": f"call-{len(messages)}-{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(values)}}
            for number, (name, values) in enumerate(calls)
        ]

    def _facts(self, prompt: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in _NEW.findall(_CONTEXT.sub("", prompt))]
        numbers = {line["text"]: line["n"] for line in lines}
        found: list[dict[str, Any]] = []
        for line in lines:
            for fact in self.facts.get(line["text"], []):
                cited = [numbers[text] for text in fact.get("from", [line["text"]]) if text in numbers]
                found.append({name: value for name, value in fact.items() if name != "from"} | {"messages": cited})
        return found

    def _decisions(self, prompt: str) -> list[dict[str, Any]]:
        kept = {line["text"]: line["k"] for line in map(json.loads, _KEPT.findall(prompt))}
        decisions: list[dict[str, Any]] = []
        for note in map(json.loads, _NEW.findall(prompt)):
            action, *of = self.decisions.get(note["text"], ["ADD"])
            decisions.append({"n": note["n"], "action": action, "of": [kept[text] for text in of if text in kept]})
        return decisions
