"""What is made of a run: groups, the JSON object, comparisons, the picture."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from agent_memory.core.errors import StartupError
from agent_memory_eval import report as reports
from agent_memory_eval.datasets import Question
from agent_memory_eval.plot import svg
from agent_memory_eval.runner import Answer, EvaluationRun, Options, holds, origin_turns


def answer(text: str, category: str, ranked: list[str], evidence: str, **more: Any) -> Answer:
    question = Question(text, category, frozenset(evidence), frozenset({"1"}))
    return Answer("c", question, ranked, more.pop("sessions", ["1"]), more.pop("ms", 5.0), **more)


def run_of(*answers: Answer) -> EvaluationRun:
    return EvaluationRun(Options("http://x", "r"), turns=10, ingest_seconds=2.0, answers=list(answers))


def test_groups() -> None:
    found = reports.report_of(
        run_of(
            answer("q1", "temporal", ["a"], "a", prompt_tokens=100, in_prompt=True, prompt_ms=7.0),
            answer("q2", "adversarial", ["x"], "a", prompt_tokens=300, in_prompt=False, prompt_ms=9.0, sessions=["2"]),
            answer("q3", "temporal", [], "", prompt_tokens=200, in_prompt=False, prompt_ms=8.0),
        ),
        "f.json",
    )
    assert {name: group["n"] for name, group in found["turn"].items()} == {
        "all": 2,
        "without adversarial": 1,
        "temporal": 1,
        "adversarial": 1,
    }
    assert found["turn"]["all"]["R@10"] == 0.5
    assert {name: group["n"] for name, group in found["session"].items()}["all"] == 3
    assert found["session"]["all"]["R@10"] == pytest.approx(2 / 3, abs=1e-4)
    assert found["prompt"]["evidence"]["all"] == {"n": 2, "share": 0.5}
    assert found["prompt"]["tokens"] == {"p50": 200.0, "p95": 300.0, "max": 300.0, "mean": 200.0}
    assert found["questions"][2]["R@10"] is None
    json.dumps(found)
    out = io.StringIO()
    reports.show(found, "turn", Console(file=out, width=140))
    assert "stored and indexed 10 turns in 2.0 s (5/s)" in out.getvalue()


def test_without_prompts_and_without_answers() -> None:
    found = reports.report_of(run_of(), "f.json")
    assert found["prompt"] is None
    assert found["turn"] == {"all": {"n": 0}}
    reports.show(found, "session", Console(file=io.StringIO()))


def test_two_runs_side_by_side() -> None:
    before = reports.report_of(run_of(answer("q1", "temporal", ["x", "a"], "a"), answer("q2", "temporal", ["a"], "a")), "f.json")
    after = reports.report_of(run_of(answer("q1", "temporal", ["a"], "a"), answer("q2", "temporal", ["x"], "a")), "f.json")
    changes = reports.compare(before, after)
    assert changes["turn"]["all"]["R@10"] == -0.5
    assert changes["turn"]["all"]["MRR"] == -0.25
    assert (changes["questions"], changes["better"], changes["worse"]) == (2, [], ["q2"])
    out = io.StringIO()
    reports.show_comparison(changes, "turn", Console(file=out, width=140))
    assert "-50.0" in out.getvalue()
    assert reports.compare(before, before)["turn"]["all"]["R@5"] == 0.0


def test_files(tmp_path: Path) -> None:
    found = [reports.report_of(run_of(answer("q1", "temporal", ["a"], "a")), "f.json")]
    (tmp_path / "a.json").write_text(json.dumps(reports.file_of(found)))
    assert reports.read(tmp_path / "a.json") == found
    for content in ("{}", "[]", "nonsense"):
        (tmp_path / "b.json").write_text(content)
        with pytest.raises(StartupError, match=r"b\.json"):
            reports.read(tmp_path / "b.json")


def test_the_picture_is_well_formed_and_holds_every_series() -> None:
    figures = {"R@5": 0.5, "R@10": 0.61, "R@20": 0.7, "R@50": 1.0}
    text = svg("Recall <here> & now", {"all": figures, "<b>": figures, "empty": {"n": 0}})
    root = ElementTree.fromstring(text)
    lines = root.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 2
    assert "61.0 % at 10" in text


def test_memories_are_matched_to_turns() -> None:
    known = {"t1", "t2", "t3"}
    memories = [{"id": "t1"}, {"id": "fact", "extracted_from": ["t2", "t1"]}, {"id": "other", "extracted_from": None}, {"id": "t2"}]
    assert origin_turns(memories, known) == ["t1", "t2", "other"]


def test_evidence_is_found_in_a_prompt_however_it_is_quoted() -> None:
    prompt = "## Memories\n- (8 May 2023) Ann: “Look, a red\n  kite!” (ID: 1)"
    assert holds(prompt, ['Ann: "Look, a red kite!"'])
    assert not holds(prompt, ["Ann: Look, a blue kite!"])
    assert not holds(prompt, ["Ann"])
