"""`agent-memory-eval` as a user meets it: a whole run against a server that it starts itself, comparisons, one line for every mistake."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.interfaces.cli.test_cli import refused
from tests.support.cli import agent_memory_eval

pytestmark = pytest.mark.slow

FILE = str(Path(__file__).parents[1] / "data" / "recall_conversations.json")


def test_a_run_against_a_server_of_its_own(tmp_path: Path) -> None:
    result = agent_memory_eval(
        *("recall", FILE, "--conversations", "1", "--entrance", "sessions", "--format", "json", "--json", "out.json", "--plot", "out.svg"),
        *("--floors", "R@10=80,MRR=10,prompt=80"),
        cwd=tmp_path,
        seconds=150,
        REDIS_URL="redis://127.0.0.1:1/0",  # must not be used: the data there is not ours
    )
    assert result.returncode == 0, result.stderr
    (report,) = json.loads(result.stdout)["runs"]
    assert json.loads((tmp_path / "out.json").read_text())["runs"] == [report]
    assert report["errors"] == []
    assert report["ingest"]["turns"] == 68
    assert report["turn"]["all"]["R@10"] > 0.8
    assert report["prompt"]["evidence"]["all"]["share"] > 0.8
    ElementTree.fromstring((tmp_path / "out.svg").read_text())
    assert {path.name for path in tmp_path.iterdir()} == {"out.json", "out.svg"}
    assert "sessions: asking" in result.stderr
    assert "all 3 floors are kept" in result.stderr

    same = agent_memory_eval("recall", "--compare", "out.json", "out.json", "--format", "json", cwd=tmp_path)
    assert same.returncode == 0, same.stderr
    (changes,) = json.loads(same.stdout)["comparisons"]
    assert set(changes["turn"]["all"].values()) == {changes["turn"]["all"]["n"], 0.0}
    table = agent_memory_eval("recall", "--compare", "out.json", "out.json", cwd=tmp_path)
    assert "+0.0" in table.stdout


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["none.json"], ("none.json", "cannot be read")),
        (["other.json"], ("other.json", "neither LoCoMo's nor LongMemEval's")),
        ([FILE, "--json", "no/such/out.json"], ("no/such/out.json", "no directory")),
        ([FILE, "--url", "http://127.0.0.1:9"], ("http://127.0.0.1:9", "does not answer")),
        ([FILE, "--url", "nonsense"], ("nonsense",)),
        ([FILE, "--floors", "R@11=80"], ("--floors", "R@11=80", "FIGURE=PERCENT")),
        (["--compare", "other.json", "other.json"], ("other.json", "not a report")),
    ],
)
def test_what_prevents_a_run_is_one_line(arguments: list[str], parts: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("[{}]")
    result = agent_memory_eval("recall", *arguments, cwd=tmp_path)
    assert result.returncode == 1
    assert result.stdout == ""
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("agent-memory: ")
    for part in parts:
        assert part in last


def test_a_command_line_without_a_file_is_wrong(tmp_path: Path) -> None:
    result = agent_memory_eval("recall", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert "FILE" in result.stderr
    assert "--compare" in result.stderr


def test_a_server_that_does_not_start_is_said(tmp_path: Path) -> None:
    result = agent_memory_eval("recall", FILE, cwd=tmp_path, LOCAL_MODEL=str(tmp_path / "nowhere"))
    refused(result, "the server for the evaluation ended", "config.json")
