"""Check prompts against the conditions in scenarios. Each check returns a problem or None."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, cast

from agent_memory_eval.prompt_text import PromptText, folded
from agent_memory_eval.scenarios import Check

_MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The data that checks examine: the prompt, its token count, and the API response (`answer`).

    `elsewhere` contains what searches and sessions return for the user. `again` is the response to
    the same request sent a second time.
    """

    prompt: PromptText
    tokens: int = 0
    answer: str = ""
    elsewhere: str = ""
    again: str = ""


def failure(check: Check, evidence: Evidence) -> str | None:
    """Return why a check failed, or None if it passed."""
    return _CHECKS[check.kind](check.value, evidence)


def _holds(text: str, part: str) -> bool:
    return folded(part) in folded(text)


def _contains(value: Any, evidence: Evidence) -> str | None:
    return None if _holds(evidence.prompt.memories, str(value)) else "the memories do not contain it"


def _contains_any(value: Sequence[str], evidence: Evidence) -> str | None:
    return None if any(_holds(evidence.prompt.memories, text) for text in value) else "the memories contain none of them"


def _not_contains(value: Any, evidence: Evidence) -> str | None:
    return "the memories contain it" if _holds(evidence.prompt.memories, str(value)) else None


def _first(value: Mapping[str, Any], evidence: Evidence) -> str | None:
    """Fail unless the memories contain `text`, and contain it before any text in `of`."""
    memories = folded(evidence.prompt.memories)
    start = memories.find(folded(str(value["text"])))
    if start < 0:
        return "the memories do not contain it"
    others = {text: memories.find(folded(text)) for text in cast("Sequence[str]", value["of"])}
    earlier = [text for text, position in others.items() if 0 <= position < start]
    return f"{earlier[0]!r} comes before it" if earlier else None


def _before(value: Sequence[str], evidence: Evidence) -> str | None:
    """Fail unless the texts first appear in the memories in this order."""
    memories = folded(evidence.prompt.memories)
    positions = [memories.find(folded(text)) for text in value]
    absent = [text for text, position in zip(value, positions, strict=True) if position < 0]
    if absent:
        return f"the memories do not contain {absent[0]!r}"
    return None if positions == sorted(positions) else "the order differs"


def _unmarked(value: Mapping[str, Any], evidence: Evidence) -> tuple[int, list[str]]:
    lines = evidence.prompt.lines_with(str(value["text"]))
    return len(lines), [line for line in lines if not _holds(line, str(value["mark"]))]


def _marked(value: Mapping[str, Any], evidence: Evidence) -> str | None:
    count, without = _unmarked(value, evidence)
    if not count:
        return "no line contains the text"
    return f"a line has no mark: {without[0]}" if without else None


def _marked_or_absent(value: Mapping[str, Any], evidence: Evidence) -> str | None:
    _, without = _unmarked(value, evidence)
    return f"a line has no mark: {without[0]}" if without else None


def _not_marked(value: Mapping[str, Any], evidence: Evidence) -> str | None:
    count, without = _unmarked(value, evidence)
    if not count:
        return "no line contains the text"
    return None if len(without) == count else "a line has the mark"


def _line_date(value: Mapping[str, Any], evidence: Evidence) -> str | None:
    lines = evidence.prompt.lines_with(str(value["text"]))
    days = _days(str(value["date"]))
    forms = [form for day in days for form in _date_forms(day)]
    if not lines:
        return "no line contains the text"
    return None if any(_holds(line, form) for line in lines for form in forms) else f"its line has another date: {lines[0]}"


def _days(written: str) -> list[date]:
    """Parse the date in a condition. "today" includes yesterday, in case midnight just passed."""
    if written != "today":
        return [date.fromisoformat(written)]
    now = datetime.now(UTC)
    return [(now - timedelta(days=back)).date() for back in (0, 1)]


def _date_forms(day: date) -> list[str]:
    month = _MONTHS[day.month - 1]
    names = (month, month[:3])
    return [day.isoformat(), *(f"{day.day} {name} {day.year}" for name in names), *(f"{name} {day.day}, {day.year}" for name in names)]


def _at_most(value: Mapping[str, Any], evidence: Evidence) -> str | None:
    """Fail if the prompt, including the session's messages, contains the text too many times."""
    count = folded(evidence.prompt.text).count(folded(str(value["text"])))
    return None if count <= int(value["times"]) else f"the prompt contains it {count} times"


def _nothing(value: Any, evidence: Evidence) -> str | None:
    """Fail if the prompt contains memories. If `value` is false, fail if it contains none."""
    lines = evidence.prompt.lines
    if value:
        return f"the prompt shows {lines[0]!r}" if lines else None
    return None if lines else "the prompt shows no memory"


def _no_system_message(_: Any, evidence: Evidence) -> str | None:
    return "the prompt has a system text" if evidence.prompt.system else None


def _system_message(_: Any, evidence: Evidence) -> str | None:
    """Fail if the prompt has no system text, or has a system message after the first message."""
    if not evidence.prompt.system:
        return "the prompt has no system text"
    middle = [role for role in evidence.prompt.roles[1:] if role == "system"]
    return "a system message is in the middle" if middle else None


def _chat_roles(_: Any, evidence: Evidence) -> str | None:
    """Fail unless all roles are "user" or "assistant", and the first and last are "user"."""
    roles = list(evidence.prompt.roles)
    plain = set(roles) <= {"user", "assistant"} and roles[:1] == roles[-1:] == ["user"]
    return None if plain else f"the roles are {roles}"


def _summary(value: Any, evidence: Evidence) -> str | None:
    return None if _holds(evidence.prompt.summary, str(value)) else "the summary does not contain it"


def _summary_any(value: Sequence[str], evidence: Evidence) -> str | None:
    return None if any(_holds(evidence.prompt.summary, text) for text in value) else "the summary contains none of them"


def _summary_lacks(value: Any, evidence: Evidence) -> str | None:
    return "the summary contains it" if _holds(evidence.prompt.summary, str(value)) else None


def _window(value: Any, evidence: Evidence) -> str | None:
    return None if _holds(evidence.prompt.window, str(value)) else "the session's messages do not contain it"


def _within_tokens(value: Any, evidence: Evidence) -> str | None:
    return None if evidence.tokens <= int(value) else f"the prompt has {evidence.tokens} tokens"


def _forgotten(value: Any, evidence: Evidence) -> str | None:
    if _holds(evidence.prompt.text, str(value)):
        return "the prompt contains it"
    return "a search, or a session, returns it" if _holds(evidence.elsewhere, str(value)) else None


def _answer(value: Any, evidence: Evidence) -> str | None:
    return None if _holds(evidence.answer, str(value)) else "the answer does not contain it"


def _answer_lacks(value: Any, evidence: Evidence) -> str | None:
    return "the answer contains it" if _holds(evidence.answer, str(value)) else None


# Reading a memory changes these fields a moment after the response.
_READINGS = frozenset({"access_count", "last_accessed"})


def _stable(_: Any, evidence: Evidence) -> str | None:
    answers = [_without_readings(json.loads(answer)) if answer else None for answer in (evidence.again, evidence.answer)]
    return None if answers[0] == answers[1] else "the same question returned another answer"


def _without_readings(answer: Any) -> Any:
    if isinstance(answer, list):
        return [_without_readings(part) for part in cast("list[Any]", answer)]
    if isinstance(answer, dict):
        fields = cast("dict[str, Any]", answer)
        return {name: _without_readings(value) for name, value in fields.items() if name not in _READINGS}
    return answer


_CHECKS: Mapping[str, Callable[[Any, Evidence], str | None]] = {
    "contains": _contains,
    "contains_any": _contains_any,
    "not_contains": _not_contains,
    "first": _first,
    "before": _before,
    "marked": _marked,
    "marked_or_absent": _marked_or_absent,
    "not_marked": _not_marked,
    "line_date": _line_date,
    "at_most": _at_most,
    "nothing": _nothing,
    "no_system_message": _no_system_message,
    "system_message": _system_message,
    "chat_roles": _chat_roles,
    "summary": _summary,
    "summary_any": _summary_any,
    "summary_lacks": _summary_lacks,
    "window": _window,
    "within_tokens": _within_tokens,
    "forgotten": _forgotten,
    "answer": _answer,
    "answer_lacks": _answer_lacks,
    "stable": _stable,
}
