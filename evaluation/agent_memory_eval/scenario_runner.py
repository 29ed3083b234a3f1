"""Run scenarios on a server, one day at a time. Each scenario has its own user."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from zlib import crc32

from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory_eval.api import Api, wait_for_work
from agent_memory_eval.prompt_checks import Evidence, failure
from agent_memory_eval.prompt_text import PromptText, content_text, folded, read_prompt
from agent_memory_eval.scenarios import Call, Check, Day, Extractor, PromptQuestion, Scenario
from agent_memory_eval.scripted_model import INVENTION, REPEATED_INSTRUCTION

_WAIT_SECONDS = 120.0
# The maximum number of memories in a prompt with `long_term_search: true`.
_LIMIT = 20
_FACT_LINE = re.compile(r"; (?:semantic|episodic|procedural)\]")


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed check with its question or call and the resulting prompt or response."""

    check: Check
    question: str
    why: str
    answer_text: str


@dataclass
class ScenarioResult:
    """The number of checks in a scenario, and the checks that failed."""

    name: str
    point: str
    extractor: Extractor
    checks: int = 0
    failures: list[Failure] = field(default_factory=list[Failure])


class ScenarioRun:
    """A run of scenarios. User ids start with `name` to keep runs on the same server separate."""

    def __init__(self, api: Api, name: str, extractor: Extractor, counter: TokenCounter, *, wait_seconds: float = _WAIT_SECONDS) -> None:
        self._api = api
        self._name = name
        self._extractor: Extractor = extractor
        self._counter = counter
        self._wait_seconds = wait_seconds
        self._sessions: dict[str, list[str]] = {}

    async def run(self, scenarios: Sequence[Scenario], progress: Callable[[int, int], None] | None = None) -> list[ScenarioResult]:
        """Run scenarios and return their results in order.

        Raises StartupError if the server does not respond or rejects a valid request.
        """
        chosen = [scenario for scenario in scenarios if scenario.concerns(self._extractor)]
        results = [ScenarioResult(scenario.name, scenario.point, self._extractor) for scenario in chosen]
        most = max((len(scenario.days) for scenario in chosen), default=0)
        for number in range(most):
            today = [
                (scenario, result, scenario.days[number])
                for scenario, result in zip(chosen, results, strict=True)
                if number < len(scenario.days)
            ]
            for scenario, _, day in today:
                await self._write(scenario, day)
            await wait_for_work(self._api, self._wait_seconds)
            for scenario, result, day in today:
                for call in day.calls:
                    await self._call(scenario, call, result)
            if any(day.calls for _, _, day in today):
                await wait_for_work(self._api, self._wait_seconds)
            for scenario, result, day in today:
                for question in day.questions:
                    await self._ask(scenario, question, result)
            if progress is not None:
                progress(number + 1, most)
        return results

    def _user(self, scenario: Scenario) -> str:
        return f"{self._name}-{_slug(scenario.name)}"

    def _session(self, scenario: Scenario, session: str) -> str:
        return f"{self._user(scenario)}-{_slug(session)}"

    async def _write(self, scenario: Scenario, day: Day) -> None:
        user = self._user(scenario)
        if day.messages:
            session = self._session(scenario, day.session)
            messages = [
                {
                    "id": f"{session}-{message.at:%Y%m%d%H%M}-{number}",
                    "role": message.role,
                    "content": message.content,
                    "created_at": message.at.isoformat(),
                    **message.more,
                }
                for number, message in enumerate(day.messages)
            ]
            names = self._sessions.setdefault(scenario.name, [])
            names += [session] if session not in names else []
            window = {"context_window_max": day.context_window} if day.context_window else {}
            await self._api.call("POST", f"{_path(session)}/messages", {"messages": messages, "user_id": user, **window})
        if day.memories:
            memories = [{"user_id": user, "memory_type": "semantic", **memory} for memory in day.memories]
            for number, memory in enumerate(memories):
                memory.setdefault("id", f"{user}-{day.session}-m{number}")
            await self._api.call("POST", "/v1/long-term-memory/", {"memories": memories})

    def _filled(self, scenario: Scenario, value: Any) -> Any:
        """Replace "{user}" and "{session:NAME}" in a call with the scenario's ids."""
        if isinstance(value, str):
            text = value.replace("{user}", self._user(scenario))
            return re.sub(r"\{session:([^{}]*)\}", lambda name: self._session(scenario, name[1]), text)
        if isinstance(value, list):
            return [self._filled(scenario, item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, dict):
            return {key: self._filled(scenario, item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
        return value

    async def _call(self, scenario: Scenario, call: Call, result: ScenarioResult) -> None:
        status, answer = await self._api.exchange(call.method, self._filled(scenario, call.path), self._filled(scenario, call.body))
        answer_json = json.dumps(answer, ensure_ascii=False, indent=1, default=str)
        name = f"{call.method} {call.path}"
        for check in self._applicable_checks(call.checks):
            why = f"the status is {status}" if status not in call.statuses else failure(check, Evidence(read_prompt({}), 0, answer_json))
            _note(result, check, name, why, f"{status} {answer_json}")

    def _applicable_checks(self, checks: Sequence[Check]) -> list[Check]:
        return [check for check in checks if self._extractor in check.extractors]

    async def _ask(self, scenario: Scenario, question: PromptQuestion, result: ScenarioResult) -> None:
        checks = self._applicable_checks(question.checks)
        if not checks:
            return
        user = self._user(scenario)
        search: dict[str, Any] = {"reference_time": question.at.isoformat(), "limit": _LIMIT, "user_id": {"eq": user}}
        if scenario.timezone:
            search["timezone"] = scenario.timezone
        body: dict[str, Any] = {"query": question.text, "user_id": user, "long_term_search": search, **question.options}
        if question.session != "none":
            name = f"asked-{crc32(question.text.encode())}" if question.session == "new" else question.session
            body["session"] = {"session_id": self._session(scenario, name), "user_id": user}
        status, answer = await self._api.exchange("POST", "/v1/memory/prompt", body)
        prompt = read_prompt(answer if status == 200 else {}, question.text)
        answer_text = _readable(answer) if status == 200 else f"{status} {answer}"
        elsewhere = await self._elsewhere(scenario, question) if any(check.kind == "forgotten" for check in checks) else ""
        tokens = sum(self._counter.count(content_text(message["content"])) for message in answer.get("messages") or ())
        again = await self._api.call("POST", "/v1/memory/prompt", body) if any(check.kind == "stable" for check in checks) else answer
        evidence = Evidence(prompt, tokens, json.dumps(answer, ensure_ascii=False), elsewhere, json.dumps(again, ensure_ascii=False))
        for check in checks:
            why = f"the status is {status}" if status != 200 else failure(check, evidence)
            _note(result, check, question.text, why, answer_text)
        if self._extractor == "sloppy" and status == 200:
            for text, why in (*_inventions(prompt), _quotation(prompt, scenario)):
                _note(result, Check("not_contains", text, frozenset({"sloppy"}), "9"), question.text, why, answer_text)

    async def _elsewhere(self, scenario: Scenario, question: PromptQuestion) -> str:
        """Return everything that searches and sessions return for the user, as JSON."""
        user = self._user(scenario)
        texts: list[Any] = [
            await self._api.call("POST", "/v1/long-term-memory/search", {"user_id": {"eq": user}, "limit": 100, **more})
            for more in ({}, {"text": question.text}, {"history": True})
        ]
        for session in self._sessions.get(scenario.name, ()):
            status, answer = await self._api.exchange("GET", f"{_path(session)}?user_id={quote(user, safe='')}")
            texts.append(answer if status == 200 else "")
        return json.dumps(texts, ensure_ascii=False)


def _note(result: ScenarioResult, check: Check, question: str, why: str | None, answer_text: str) -> None:
    result.checks += 1
    if why is not None:
        result.failures.append(Failure(check, question, why, answer_text))


def _inventions(prompt: PromptText) -> list[tuple[str, str | None]]:
    """Check that the prompt does not contain the texts that the sloppy model makes up."""
    return [(text, "the prompt contains it" if folded(text) in folded(prompt.text) else None) for text in (INVENTION, REPEATED_INSTRUCTION)]


def _quotation(prompt: PromptText, scenario: Scenario) -> tuple[str, str | None]:
    """Find a memory line that presents the assistant's words as a fact."""
    assistant_messages = [message for day in scenario.days for message in day.messages if message.role == "assistant" and not message.facts]
    facts = [line for line in prompt.lines if _FACT_LINE.search(line)]
    quoted = [line for line in facts for message in assistant_messages if folded(message.content) in folded(line)]
    return "the assistant's words as a fact", quoted[0] if quoted else None


def _readable(answer: dict[str, Any]) -> str:
    parts = [content_text(answer.get("system")), answer["text"] if isinstance(answer.get("text"), str) else ""]
    parts += [f"{message['role']}: {content_text(message['content'])}" for message in answer.get("messages") or ()]
    return "\n".join(filter(None, parts))


def _path(session: str) -> str:
    return f"/v1/working-memory/{quote(session, safe='')}"


def _slug(text: str) -> str:
    """Convert a name to part of an id. A checksum keeps non-Latin names distinct."""
    return f"{re.sub(r'[^a-z0-9]+', '-', text.lower()).strip('-')}-{crc32(text.encode()):08x}"
