"""Test scenario checks on sample prompts, and errors for invalid scenario files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.text.prompt_marks import DATA_NOTE, MEMORIES_HEAD, NO_MEMORIES, SUMMARY_HEAD
from agent_memory_eval.prompt_checks import Evidence, failure
from agent_memory_eval.prompt_text import read_prompt
from agent_memory_eval.scenarios import EXTRACTORS, KINDS, Check, load_scenarios

_MEMORIES = (
    MEMORIES_HEAD
    + "- [3 March 2025, 5 days ago; message] user said: I like Plums. (ID: 01ABRB)\n"
    + "- [8 March 2025, today; message] user said (latest): I like pears. (ID: 01ABC)"
    + DATA_NOTE
)
_PROMPT = {
    "messages": [
        {"role": "system", "content": {"type": "text", "text": SUMMARY_HEAD + "They spoke of apples."}},
        {"role": "user", "content": {"type": "text", "text": "I bake cakes."}},
        {"role": "assistant", "content": {"type": "text", "text": "Which cakes?"}},
        {"role": "system", "content": {"type": "text", "text": _MEMORIES}},
        {"role": "user", "content": {"type": "text", "text": "Which fruit?"}},
    ]
}
_NOTHING = {"messages": [{"role": "system", "content": MEMORIES_HEAD + NO_MEMORIES}, {"role": "user", "content": "Which fruit?"}]}
_BARE = {"messages": [{"role": "user", "content": "Which fruit?"}]}
_APART = {"system": [{"type": "text", "text": _MEMORIES}], "messages": [{"role": "user", "content": "I bake cakes.\nWhich fruit?"}]}
_BARE_TEXT = {"text": "Which fruit?"}
_FIRST = {"messages": [{"role": "system", "content": _MEMORIES}, {"role": "user", "content": "Which fruit?"}]}

_CASES: list[tuple[str, Any, dict[str, Any], bool]] = [
    ("contains", "like  plums", _PROMPT, True),
    ("contains", "apples", _PROMPT, False),
    ("contains", "cakes", _PROMPT, False),
    ("contains", "plums", _APART, True),
    ("contains_any", ["figs", "pears"], _PROMPT, True),
    ("nothing", True, _BARE_TEXT, True),
    ("contains_any", ["figs"], _PROMPT, False),
    ("not_contains", "brb", _PROMPT, True),
    ("not_contains", "plums", _PROMPT, False),
    ("first", {"text": "plums", "of": ["pears", "figs"]}, _PROMPT, True),
    ("first", {"text": "pears", "of": ["plums"]}, _PROMPT, False),
    ("first", {"text": "figs", "of": ["plums"]}, _PROMPT, False),
    ("before", ["plums", "pears"], _PROMPT, True),
    ("before", ["pears", "plums"], _PROMPT, False),
    ("before", ["plums", "figs"], _PROMPT, False),
    ("marked", {"text": "pears", "mark": "latest"}, _PROMPT, True),
    ("marked", {"text": "plums", "mark": "latest"}, _PROMPT, False),
    ("marked", {"text": "figs", "mark": "latest"}, _PROMPT, False),
    ("marked", {"text": "I like", "mark": "latest"}, _PROMPT, False),
    ("marked_or_absent", {"text": "figs", "mark": "latest"}, _PROMPT, True),
    ("marked_or_absent", {"text": "plums", "mark": "latest"}, _PROMPT, False),
    ("not_marked", {"text": "plums", "mark": "latest"}, _PROMPT, True),
    ("not_marked", {"text": "pears", "mark": "latest"}, _PROMPT, False),
    ("not_marked", {"text": "figs", "mark": "latest"}, _PROMPT, False),
    ("line_date", {"text": "plums", "date": "2025-03-03"}, _PROMPT, True),
    ("line_date", {"text": "plums", "date": "2025-03-08"}, _PROMPT, False),
    ("line_date", {"text": "plums", "date": "today"}, _PROMPT, False),
    ("at_most", {"text": "I like", "times": 2}, _PROMPT, True),
    ("at_most", {"text": "I like", "times": 1}, _PROMPT, False),
    ("at_most", {"text": "which fruit", "times": 0}, _PROMPT, True),
    ("nothing", True, _NOTHING, True),
    ("nothing", True, _BARE, True),
    ("nothing", True, _PROMPT, False),
    ("nothing", False, _PROMPT, True),
    ("nothing", False, _NOTHING, False),
    ("no_system_message", True, _BARE, True),
    ("no_system_message", True, _NOTHING, False),
    ("no_system_message", True, _APART, False),
    ("system_message", True, _APART, True),
    ("system_message", True, _FIRST, True),
    ("system_message", True, _PROMPT, False),
    ("system_message", True, _BARE, False),
    ("chat_roles", True, _APART, True),
    ("chat_roles", True, _FIRST, False),
    ("summary", "apples", _PROMPT, True),
    ("summary", "plums", _PROMPT, False),
    ("summary_any", ["figs", "apples"], _PROMPT, True),
    ("summary_any", ["figs"], _PROMPT, False),
    ("summary_lacks", "plums", _PROMPT, True),
    ("summary_lacks", "apples", _PROMPT, False),
    ("window", "bake cakes", _PROMPT, True),
    ("window", "bake cakes", _APART, True),
    ("window", "which fruit", _APART, False),
    ("within_tokens", 12, _PROMPT, True),
    ("within_tokens", 11, _PROMPT, False),
    ("forgotten", "figs", _PROMPT, True),
    ("forgotten", "apples", _PROMPT, False),
    ("forgotten", "quinces", _PROMPT, False),
    ("answer", "receipt", _PROMPT, True),
    ("answer", "figs", _PROMPT, False),
    ("answer_lacks", "figs", _PROMPT, True),
    ("answer_lacks", "receipt", _PROMPT, False),
    ("stable", True, _PROMPT, True),
    ("stable", True, _NOTHING, False),
]


@pytest.mark.parametrize(("kind", "value", "answer", "holds"), _CASES, ids=[f"{kind}-{value}-{holds}" for kind, value, _, holds in _CASES])
def test_check_passes_or_fails_as_expected(kind: Any, value: Any, answer: dict[str, Any], holds: bool) -> None:
    again = '{"receipt": 2}' if answer is _NOTHING else '{"receipt": 1}'
    evidence = Evidence(
        read_prompt(answer, "Which fruit?"), tokens=12, answer='{"receipt": 1}', elsewhere="They sold quinces.", again=again
    )
    why = failure(Check(kind, value, frozenset(EXTRACTORS), "1"), evidence)
    assert (why is None) is holds, why


def test_cases_cover_pass_and_failure_of_every_check() -> None:
    assert {kind for kind, _, _, holds in _CASES if holds} == {kind for kind, _, _, holds in _CASES if not holds} == KINDS


_DAY = {"at": "2025-03-03T09:00:00Z", "say": ["I like plums."]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- [", "cannot be read"),
        ("name: x", "contains no list"),
        ([{"name": "x"}], "scenario x: KeyError 'days'"),
        ([{"name": "x", "days": [_DAY], "question": []}], "a scenario has no 'question'"),
        ([{"name": "x", "days": [_DAY | {"says": []}]}], "a day has no 'says'"),
        ([{"name": "x", "days": [_DAY], "questions": [{"ask": "?", "checks": [{"holds": "y"}]}]}], "unknown check 'holds'"),
        ([{"name": "x", "days": [_DAY], "questions": [{"ask": "?", "with": ["best"], "checks": [{"contains": "y"}]}]}], "'best'"),
        ([{"name": "x", "days": [_DAY]}, {"name": "x", "days": [_DAY]}], "two scenarios are named 'x'"),
    ],
)
def test_invalid_scenario_file_is_refused_with_one_line(text: Any, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "scenarios.yaml"
    path.write_text(text if isinstance(text, str) else yaml.safe_dump(text), encoding="utf-8")
    with pytest.raises(StartupError) as refused:
        load_scenarios(path)
    assert problem in refused.value.message
    assert "\n" not in refused.value.message


def test_folder_of_scenarios_is_one_list_with_unique_names(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="contains no YAML files"):
        load_scenarios(tmp_path)
    for file, name in (("b.yaml", "second"), ("a.yaml", "first")):
        (tmp_path / file).write_text(yaml.safe_dump([{"name": name, "days": [_DAY]}]), encoding="utf-8")
    assert [scenario.name for scenario in load_scenarios(tmp_path)] == ["first", "second"]
    (tmp_path / "c.yaml").write_text(yaml.safe_dump([{"name": "first", "days": [_DAY]}]), encoding="utf-8")
    with pytest.raises(StartupError, match="two scenarios are named 'first'"):
        load_scenarios(tmp_path)


def test_list_of_texts_is_one_check_each_and_messages_are_minutes_apart(tmp_path: Path) -> None:
    path = tmp_path / "scenarios.yaml"
    question = {"ask": "Which fruit?", "session": "same", "checks": [{"contains": ["a", "b"], "before": ["a", "b"]}]}
    scenarios = [{"name": "x", "days": [_DAY | {"say": ["One.", {"assistant": "Two."}]}], "questions": [question]}]
    path.write_text(yaml.safe_dump(scenarios, sort_keys=False))
    [scenario] = load_scenarios(path)
    [day] = scenario.days
    assert [(message.role, message.at.isoformat()) for message in day.messages] == [
        ("user", "2025-03-03T09:00:00+00:00"),
        ("assistant", "2025-03-03T09:01:00+00:00"),
    ]
    assert [(check.kind, check.value) for check in scenario.checks("none")] == [
        ("contains", "a"),
        ("contains", "b"),
        ("before", ["a", "b"]),
    ]
    assert day.questions[0].session == day.session == "day-1"
    assert scenario.checks("perfect") == [], "without facts there is nothing to extract"


def test_stable_check_ignores_access_counts() -> None:
    answers = [f'{{"long_term_memories": [{{"text": "x", "access_count": {count}, "last_accessed": "{count}"}}]}}' for count in (0, 1)]
    evidence = Evidence(read_prompt({"messages": []}, "Which fruit?"), answer=answers[0], again=answers[1])
    assert failure(Check("stable", True, frozenset(EXTRACTORS), "1"), evidence) is None
