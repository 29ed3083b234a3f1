"""Serve a scripted model for scenarios on localhost, in a background thread.

The model's replies contain the facts in a scenario's messages. The "perfect" model cites, dates and
compares facts correctly. The "sloppy" model makes typical mistakes. It cites no messages or the
entire batch, repeats its instructions, invents facts, treats the assistant's words as facts, and
never replaces outdated facts.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, cast

import uvicorn

from agent_memory.foundation.core.errors import StartupError
from agent_memory_eval.prompt_text import folded
from agent_memory_eval.scenarios import Scenario, ScenarioFact

Habits = Literal["perfect", "sloppy"]

INVENTION = "User owns a yacht called Aurora Borealis."
REPEATED_INSTRUCTION = "One fact per entry, each understandable on its own years later."
_START_SECONDS = 10.0
_LEAST_PART = 8
_NEW = re.compile(r'^\{"n": ?-?\d+.*\}$', re.MULTILINE)
_KEPT = re.compile(r'^\{"k": ?\d+.*\}$', re.MULTILINE)
_CONTEXT = re.compile(r"<(context-\w+)>.*?</\1>", re.DOTALL)
_SUMMARY = re.compile(r"<(summary-\w+)>\n(.*?)\n</\1>", re.DOTALL)
_SUMMARY_CHARACTERS = 2000
_Line = Mapping[str, Any]
_Event = MutableMapping[str, Any]


class ScenarioModel:
    """A deterministic model whose replies depend only on the prompt."""

    def __init__(self, scenarios: Sequence[Scenario], habits: Habits) -> None:
        """Collect all facts. Raises StartupError if equal messages have different facts."""
        self._habits: Habits = habits
        self._facts: dict[str, list[ScenarioFact]] = {}
        for scenario in scenarios:
            for day in scenario.days:
                for message in day.messages:
                    earlier_facts = self._facts.setdefault(folded(message.content), list(message.facts))
                    if earlier_facts != list(message.facts):
                        raise StartupError(f"scenario {scenario.name}: two messages say {message.content!r}, with different facts")
        self._by_text = {folded(fact.text): fact for facts in self._facts.values() for fact in facts}

    def answer(self, prompt: str) -> str:
        """Return the model's reply to a prompt."""
        if '"decisions"' in prompt:
            return _json({"decisions": self._decisions(prompt)})
        if '{"same": [' in prompt:
            pairs = _lines(_NEW, prompt)
            return _json({"same": [pair["n"] for pair in pairs if self._same(pair.get("a", ""), pair.get("b", " "))]})
        if '"memories"' in prompt:
            return _json({"memories": self._extracted(_lines(_NEW, _CONTEXT.sub("", prompt)))})
        if '"summary"' in prompt:
            return _json({"summary": _summary_of(prompt), "topics": []})
        return "{}"

    def _facts_in(self, text: str) -> list[ScenarioFact]:
        """Return a message's facts, even if the server shows only part of the message."""
        folded_text = folded(text)
        if folded_text in self._facts:
            return self._facts[folded_text]
        wholes = [message for message in self._facts if len(folded_text) >= _LEAST_PART and folded_text in message]
        return self._facts[min(wholes, key=len)] if wholes else []

    def _extracted(self, lines: Sequence[_Line]) -> list[dict[str, Any]]:
        facts = [_written(fact, [line["n"]]) for line in lines for fact in self._facts_in(str(line["text"]))]
        return facts if self._habits == "perfect" else self._spoiled(lines, facts)

    def _spoiled(self, lines: Sequence[_Line], facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Add wrong citations and invented facts to the extracted facts."""
        batch = [line["n"] for line in lines]
        for fact in facts:
            # The text determines the mistake, so the mistake does not depend on how messages are batched.
            habit = sum(map(ord, fact["text"])) % 3
            fact["messages"] = [[], batch, fact["messages"]][habit]
        quoted = [line for line in lines if line.get("role") == "assistant" and not self._facts_in(str(line["text"]))][:1]
        facts += [{"text": line["text"], "type": "semantic", "speaker": "user", "messages": [line["n"]]} for line in quoted]
        facts.append({"text": REPEATED_INSTRUCTION, "type": "procedural", "messages": batch})
        facts.append({"text": INVENTION, "type": "semantic", "messages": batch[-1:]})
        return facts

    def _decisions(self, prompt: str) -> list[dict[str, Any]]:
        existing_notes = {line["k"]: line for line in _lines(_KEPT, prompt)}
        return [self._decision(note, existing_notes) for note in _lines(_NEW, prompt)]

    def _decision(self, note: _Line, existing_notes: Mapping[int, _Line]) -> dict[str, Any]:
        near = [k for k in note.get("near", ()) if k in existing_notes]
        if self._habits == "perfect":
            same = [k for k in near if self._same(str(note["text"]), str(existing_notes[k]["text"]))]
            if same:
                return {"n": note["n"], "action": "NONE", "of": same[:1]}
            ended = [k for k in near if self._ends(str(note["text"]), str(existing_notes[k]["text"]))]
            if ended:
                return {"n": note["n"], "action": "SUPERSEDE", "of": ended}
        return {"n": note["n"], "action": "ADD", "of": []}

    def _same(self, new: str, old: str) -> bool:
        if folded(new) == folded(old):
            return True
        one, other = self._by_text.get(folded(new)), self._by_text.get(folded(old))
        return bool(one and other and one.slot and one.slot == other.slot and one.value is not None and one.value == other.value)

    def _ends(self, new: str, old: str) -> bool:
        one, other = self._by_text.get(folded(new)), self._by_text.get(folded(old))
        return bool(one and other and one.slot and one.slot == other.slot and one is not other)


def _written(fact: ScenarioFact, messages: list[int]) -> dict[str, Any]:
    return {"text": fact.text, "type": "semantic", "slot": fact.slot, "messages": messages, **fact.details}


def _lines(pattern: re.Pattern[str], prompt: str) -> list[_Line]:
    lines: list[_Line] = []
    for line in pattern.findall(prompt):
        try:
            lines.append(cast("_Line", json.loads(line)))
        except ValueError:
            continue
    return lines


def _summary_of(prompt: str) -> str:
    previous = _SUMMARY.search(prompt)
    message_lines = [f"{line.get('role', 'user')} said: {line['text']}" for line in _lines(_NEW, prompt) if "text" in line]
    return "\n".join(([previous[2]] if previous else []) + message_lines)[:_SUMMARY_CHARACTERS] or "Nothing was said."


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@contextmanager
def model_server(scenarios: Sequence[Scenario], habits: Habits) -> Generator[str]:
    """Serve a model for these scenarios, and yield its base URL.

    Raises StartupError if the server does not start.
    """
    model = ScenarioModel(scenarios, habits)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(_app(model), log_level="critical", lifespan="off", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not server.started:
            if time.monotonic() > deadline or not thread.is_alive():
                raise StartupError("the scenarios' model server does not start")
            time.sleep(0.005)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join(_START_SECONDS)
        listener.close()


def _app(model: ScenarioModel) -> Callable[..., Awaitable[None]]:
    """Return the ASGI application. It returns 404 for paths other than `…/chat/completions`."""

    async def app(scope: Mapping[str, Any], receive: Callable[[], Awaitable[_Event]], send: Callable[[_Event], Awaitable[None]]) -> None:
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        if scope.get("path", "").endswith("/chat/completions"):
            status, answer = 200, _completion(model, json.loads(body))
        else:
            status, answer = 404, {"error": {"message": "unknown path", "type": "error"}}
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": _json(answer).encode()})

    return app


def _completion(model: ScenarioModel, body: Mapping[str, Any]) -> dict[str, Any]:
    prompt = "\n".join(str(message.get("content")) for message in body.get("messages", ()))
    choice = {"index": 0, "message": {"role": "assistant", "content": model.answer(prompt)}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": body.get("model"), "choices": [choice], "usage": usage}
