"""Test that `agent-memory-eval prompts` runs scenarios and prints failures with their prompts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import agent_memory_eval

SCENARIOS = """
- name: fruit
  point: 2
  days:
    - at: 2025-03-03T09:00:00Z
      say: [{user: "I like plums.", facts: [{text: "User likes plums."}]}]
  questions:
    - ask: "Which fruit do I like?"
      checks: [{contains: plums}, {contains: quinces}]
"""


def test_failed_checks_are_printed_with_their_prompts(tmp_path: Path) -> None:
    (tmp_path / "fruit.yaml").write_text(SCENARIOS)
    result = agent_memory_eval("prompts", "fruit.yaml", "--extractor", "none", cwd=tmp_path)
    assert result.returncode == 1
    assert "none: fruit: 'Which fruit do I like?': contains: quinces: the memories do not contain it" in result.stdout
    assert "I like plums." in result.stdout
    assert result.stdout.endswith("extractor none: 1 of 2 checks hold in 1 scenarios\n")


def test_perfect_extractor_passes_all_checks_in_json_output(tmp_path: Path) -> None:
    (tmp_path / "fruit.yaml").write_text(SCENARIOS.replace(", {contains: quinces}", ', {contains: "User likes plums."}'))
    result = agent_memory_eval("prompts", "fruit.yaml", "--extractor", "perfect", "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    run = json.loads(result.stdout)["runs"]["perfect"]
    assert (run["scenarios"], run["checks"], run["passed"], run["failures"]) == (1, 2, 2, [])


@pytest.mark.parametrize(
    ("arguments", "part"),
    [(["none.yaml"], "cannot be read"), (["fruit.yaml", "--scenario", "vegetables"], "unknown scenario 'vegetables'")],
)
def test_run_that_cannot_start_fails_with_one_line(arguments: list[str], part: str, tmp_path: Path) -> None:
    (tmp_path / "fruit.yaml").write_text(SCENARIOS)
    result = agent_memory_eval("prompts", *arguments, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    [line] = result.stderr.strip().splitlines()
    assert part in line
