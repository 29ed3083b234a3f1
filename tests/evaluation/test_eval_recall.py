"""Test `agent-memory-eval recall` on a small question set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_memory_eval.report import EVERY, NONE
from tests.interfaces.cli.test_cli import refused
from tests.support.cli import agent_memory_eval, unwrapped

pytestmark = pytest.mark.slow

FILE = str(Path(__file__).parents[1] / "data" / "tiny_questions.json")


def test_recall_run_reports_baselines_and_passes_its_floors(tmp_path: Path) -> None:
    (tmp_path / "floors.toml").write_text('[tiny]\n"R@10" = 80\nMRR = 50\nevidence = 80\n[another]\nMRR = 100\n')
    result = agent_memory_eval(
        *("recall", FILE, "--floors", "floors.toml", "--via", "sessions", "--crowd", "200", "--json", "out.json"),
        cwd=tmp_path,
        REDIS_URL="redis://127.0.0.1:1/0",  # must not be used: the data there is not ours
    )
    assert result.returncode == 0, result.stdout + result.stderr
    groups = json.loads((tmp_path / "out.json").read_text())["sets"]["tiny"]["groups"]
    assert groups[EVERY]["R@10"]["mean"] >= 0.8
    assert {"dense", "BM25", "RRF", "gain", "precision"} <= groups[EVERY].keys()
    assert (groups[EVERY]["R@10"]["n"], groups["fact/one turn"]["R@10"]["n"], groups[NONE]["lines"]["n"]) == (5, 4, 1)
    assert "**tiny**" in result.stdout
    assert "| kept |" in result.stdout
    assert "tiny: holds R@10" in result.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"floors.toml", "out.json"}


def test_figure_below_its_floor_fails_the_run_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "floors.toml").write_text("[tiny]\ngain = 100\n")
    result = agent_memory_eval("recall", FILE, "--floors", "floors.toml", "--questions", "3", "--prompts", "0", cwd=tmp_path)
    assert result.returncode == 1, result.stderr
    assert "| below: gain |" in result.stdout
    assert "tiny: BELOW gain" in result.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["none.json"], ("none.json", "cannot be read")),
        (["other.json"], ("other.json", "not a question set")),
        ([FILE, "--sets", "huge"], ("'huge'", "tiny")),
        ([FILE, "--json", "no/such/out.json"], ("no/such/out.json", "no directory")),
        ([FILE, "--base-url", "http://127.0.0.1:9"], ("http://127.0.0.1:9", "does not answer")),
        ([FILE, "--base-url", "nonsense"], ("nonsense",)),
        ([FILE, "--floors", "other.json"], ("other.json", "cannot be read")),
    ],
)
def test_run_that_cannot_start_fails_with_one_line(arguments: list[str], parts: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    result = agent_memory_eval("recall", *arguments, cwd=tmp_path)
    assert result.returncode == 1
    assert result.stdout == ""
    _, start, last = unwrapped(result.stderr).rpartition("agent-memory: ")
    assert start
    for part in parts:
        assert part in last


def test_server_start_failure_is_reported(tmp_path: Path) -> None:
    result = agent_memory_eval("recall", FILE, cwd=tmp_path, LOCAL_MODEL=str(tmp_path / "nowhere"))
    refused(result, "the server for the evaluation ended", "neither a directory nor one of")
