"""Read scenarios from YAML: days of messages, followed by questions and checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, cast, get_args

import yaml

from agent_memory.foundation.core.errors import StartupError

Extractor = Literal["none", "perfect", "sloppy"]
EXTRACTORS: tuple[Extractor, ...] = get_args(Extractor)
CheckKind = Literal[
    "contains",
    "contains_any",
    "not_contains",
    "first",
    "before",
    "marked",
    "marked_or_absent",
    "not_marked",
    "line_date",
    "at_most",
    "nothing",
    "no_system_message",
    "system_message",
    "chat_roles",
    "summary",
    "summary_any",
    "summary_lacks",
    "window",
    "within_tokens",
    "forgotten",
    "answer",
    "answer_lacks",
    "stable",
]
KINDS: frozenset[str] = frozenset(get_args(CheckKind))
_SPREAD = frozenset({"contains", "not_contains", "forgotten", "summary", "summary_lacks", "window", "answer", "answer_lacks"})
_STEP_KEYS = frozenset({"at", "session", "context_window", "say", "memories", "calls", "questions"})
_QUESTION_KEYS = frozenset({"ask", "at", "session", "max_tokens", "format", "include_ids", "with", "point", "checks"})
_SCENARIO_KEYS = frozenset({"name", "point", "language", "timezone", "days", "questions"})
_MESSAGE_KEYS = frozenset({"role", "content", "name", "at", "facts"})
_ROLES = ("user", "assistant", "system", "developer", "tool", "function")
_FACT_KEYS = frozenset({"text", "slot", "value", "type", "event_date", "valid_from", "topics", "entities", "speaker"})


@dataclass(frozen=True, slots=True)
class Check:
    """A condition to check. The kind determines whether `value` is a text, a mapping or true.

    The check applies only to runs with one of `extractors`.
    """

    kind: CheckKind
    value: Any
    extractors: frozenset[Extractor]
    point: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.value}"


@dataclass(frozen=True, slots=True)
class ScenarioFact:
    """A fact that a model extracts from a message.

    Only one fact per slot is true at a time. Facts with the same slot and value are equal.
    """

    text: str
    slot: str | None = None
    value: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ScenarioMessage:
    """A message. `more` contains additional fields, such as `name`."""

    role: str
    content: str
    at: datetime
    facts: Sequence[ScenarioFact] = ()
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Call:
    """An API request. `path` and `body` may contain "{user}" and "{session:NAME}"."""

    method: str
    path: str
    body: Any
    statuses: Sequence[int]
    checks: Sequence[Check]


@dataclass(frozen=True, slots=True)
class PromptQuestion:
    """A question. `session` is "same" (the last session with messages), "new" (an empty session) or "none"."""

    text: str
    at: datetime
    session: str
    options: Mapping[str, Any]
    checks: Sequence[Check]


@dataclass(frozen=True, slots=True)
class Day:
    """A day: messages, memories and calls, followed by questions once background work is done."""

    session: str
    messages: Sequence[ScenarioMessage]
    memories: Sequence[Mapping[str, Any]]
    calls: Sequence[Call]
    questions: Sequence[PromptQuestion]
    context_window: int | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A sequence of days for one user."""

    name: str
    point: str
    timezone: str | None
    days: Sequence[Day]
    language: str = "en"

    @property
    def facts(self) -> list[tuple[str, ScenarioFact]]:
        """All facts in the scenario, each with its message's text."""
        return [(message.content, fact) for day in self.days for message in day.messages for fact in message.facts]

    def concerns(self, extractor: Extractor) -> bool:
        """True if any check applies to this extractor."""
        return bool(self.checks(extractor))

    def checks(self, extractor: Extractor) -> list[Check]:
        """Return the checks that apply to this extractor, including the checks on calls."""
        if extractor != "none" and not self.facts:
            return []
        groups = [group.checks for day in self.days for group in (*day.calls, *day.questions)]
        return [check for group in groups for check in group if extractor in check.extractors]


def load_scenarios(path: Path) -> list[Scenario]:
    """Load the scenarios in a file or in all YAML files in a folder.

    Raises StartupError if there are no scenarios or a file is invalid.
    """
    if path.is_dir():
        files = sorted(path.glob("*.yaml"))
        if not files:
            raise StartupError(f"{path} contains no YAML files")
        return _distinct([scenario for file in files for scenario in load_scenarios(file)], path)
    try:
        data: object = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise StartupError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(data, list) or not data:
        raise StartupError(f"{path} contains no list of scenarios")
    scenarios: list[Scenario] = []
    for number, raw in enumerate(cast("list[Any]", data), start=1):
        name = cast("dict[str, Any]", raw).get("name", number) if isinstance(raw, dict) else number
        try:
            scenarios.append(_scenario(raw))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StartupError(f"{path}: scenario {name}: {type(error).__name__} {error}") from error
    return _distinct(scenarios, path)


def _distinct(scenarios: list[Scenario], path: Path) -> list[Scenario]:
    names = [scenario.name for scenario in scenarios]
    if doubles := sorted({name for name in names if names.count(name) > 1}):
        raise StartupError(f"{path}: two scenarios are named {doubles[0]!r}")
    return scenarios


def _scenario(raw: Mapping[str, Any]) -> Scenario:
    _known_keys(raw, _SCENARIO_KEYS, "a scenario")
    point = str(raw.get("point", ""))
    days: list[Day] = []
    for number, day in enumerate(raw["days"], start=1):
        previous = days[-1].session if days else ""
        days.append(_day(day, f"day-{number}", previous, point))
    if raw.get("questions"):
        last = _last_moment(days)
        extra = [_question(question, last, days[-1].session, point) for question in raw["questions"]]
        final = days[-1]
        days[-1] = Day(final.session, final.messages, final.memories, final.calls, [*final.questions, *extra], final.context_window)
    return Scenario(str(raw["name"]), point, raw.get("timezone"), days, str(raw.get("language", "en")))


def _day(raw: Mapping[str, Any], session: str, previous: str, point: str) -> Day:
    _known_keys(raw, _STEP_KEYS, "a day")
    start = _moment(raw["at"])
    messages: list[ScenarioMessage] = []
    for number, raw_message in enumerate(raw.get("say", ())):
        messages.append(_message(raw_message, start + timedelta(minutes=number)))
    # A day without messages continues the last session, if any.
    session = str(raw.get("session") or (session if messages else previous or session))
    last = messages[-1].at if messages else start
    return Day(
        session,
        messages,
        list(raw.get("memories", ())),
        [_call(call, point) for call in raw.get("calls", ())],
        [_question(question, last, session, point) for question in raw.get("questions", ())],
        raw.get("context_window"),
    )


def _message(raw: Mapping[str, Any] | str, at: datetime) -> ScenarioMessage:
    if isinstance(raw, str):
        return ScenarioMessage("user", raw, at)
    role = next((role for role in _ROLES if role in raw), None)
    _known_keys(raw, _MESSAGE_KEYS | ({role} if role else set()), "a message")
    content = raw[role] if role else raw["content"]
    facts = [_fact(fact) for fact in raw.get("facts", ())]
    more = {"name": raw["name"]} if "name" in raw else {}
    return ScenarioMessage(role or str(raw["role"]), str(content), _moment(raw["at"]) if "at" in raw else at, facts, more)


def _fact(raw: Mapping[str, Any]) -> ScenarioFact:
    _known_keys(raw, _FACT_KEYS, "a fact")
    details = {name: str(value) if name in ("event_date", "valid_from") else value for name, value in raw.items()}
    for name in ("text", "slot", "value"):
        details.pop(name, None)
    value = raw.get("value")
    return ScenarioFact(str(raw["text"]), raw.get("slot"), None if value is None else str(value), details)


def _call(raw: Mapping[str, Any], point: str) -> Call:
    _known_keys(raw, {"method", "path", "body", "status", "checks", "point"}, "a call")
    checks = _checks(raw.get("checks", ()), EXTRACTORS, str(raw.get("point", point)))
    status = raw.get("status", 200)
    statuses = cast("list[int]", status) if isinstance(status, list) else [int(status)]
    return Call(raw.get("method", "POST"), raw["path"], raw.get("body"), statuses, checks)


def _question(raw: Mapping[str, Any], last: datetime, session: str, point: str) -> PromptQuestion:
    _known_keys(raw, _QUESTION_KEYS, "a question")
    session_choice = str(raw.get("session", "new"))
    options = {name: raw[name] for name in ("max_tokens", "format", "include_ids") if name in raw}
    at = _moment(raw["at"]) if "at" in raw else last + timedelta(hours=1)
    checks = _checks(raw["checks"], raw.get("with", EXTRACTORS), str(raw.get("point", point)))
    return PromptQuestion(str(raw["ask"]), at, session if session_choice == "same" else session_choice, options, checks)


def _checks(raw: Sequence[Mapping[str, Any]], extractors: Sequence[Any], point: str) -> list[Check]:
    """Parse checks. A check with a list of texts becomes one check per text."""
    checks: list[Check] = []
    for entry in raw:
        chosen = frozenset(entry.get("with", extractors))
        if unknown := chosen.difference(EXTRACTORS):
            raise ValueError(f"unknown extractor {sorted(unknown)[0]!r}")
        for kind, value in entry.items():
            if kind in ("with", "point"):
                continue
            if kind not in KINDS:
                raise ValueError(f"unknown check {kind!r}")
            values = cast("list[Any]", value) if kind in _SPREAD and isinstance(value, list) else [value]
            checks += [Check(cast("CheckKind", kind), each, chosen, str(entry.get("point", point))) for each in values]
    return checks


def _known_keys(raw: Mapping[str, Any], allowed_keys: frozenset[str] | set[str], what: str) -> None:
    if unknown := set(raw).difference(allowed_keys):
        raise ValueError(f"{what} has no {sorted(unknown)[0]!r}")


def _moment(value: object) -> datetime:
    """Parse a time. "now" means the current time, and the default time zone is UTC."""
    if value == "now":
        return datetime.now(UTC)
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _last_moment(days: Sequence[Day]) -> datetime:
    return max((message.at for day in days for message in day.messages), default=datetime(2025, 3, 1, tzinfo=UTC))
