"""`examples/replay.py` plays conversations through the public API: nothing fails, nothing is lost, and questions find their answers."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import ROOT, clean_environment

pytestmark = pytest.mark.slow

OURS = ROOT / "tests" / "data" / "conversations.json"
# Real conversations may not be distributed; where they lie beside the project, the first of them is replayed as well.
REAL = ROOT.parent / "shared" / "data" / "locomo_dev.json"


async def replay(base_url: str, file: Path, out: Path, *options: str) -> tuple[int, str, list[dict[str, Any]]]:
    """Runs the example; its exit code, its output and its figures."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(ROOT / "examples" / "replay.py"), str(file), "--base-url", base_url, "--json", str(out), *options),
        env=clean_environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode(), figures_of(out)


def figures_of(out: Path) -> list[dict[str, Any]]:
    """What the example wrote, nothing if it did not come so far."""
    return json.loads(out.read_text()) if out.exists() else []


def share(figures: list[dict[str, Any]]) -> float:
    """The share of the questions of categories 1 to 4 whose evidence was found."""
    asked = sum(report["asked"].get(category, 0) for report in figures for category in "1234")
    return sum(report["found"].get(category, 0) for report in figures for category in "1234") / asked


@pytest.mark.parametrize(
    ("file", "options"),
    [(OURS, ("--context-window", "1000"))] + [(REAL, ("--conversations", "1"))] * REAL.exists(),
    ids=["ours"] + ["real"] * REAL.exists(),
)
async def test_replayed_conversations_are_stored_summarized_and_found(
    served: str, tmp_path: Path, file: Path, options: tuple[str, ...]
) -> None:
    run = ("--run", file.stem, *options)
    code, output, figures = await replay(served, file, tmp_path / "first.json", *run)

    assert code == 0, output
    [report] = figures
    assert report["errors"] == report["lost"] == []
    assert report["appended"] == report["turns"]
    assert report["summary_characters"] > 0
    assert report["summarized"] > 0
    assert report["left_in_session"] + report["summarized"] == report["turns"]
    assert report["window_used"] <= 70, "the threshold at which a session is summarized"
    assert report["memories"]["message"] + report["in_summary_only"] >= report["turns"] - report["left_in_session"]
    assert share(figures) >= 0.6

    code, output, again = await replay(served, file, tmp_path / "second.json", *run, "--no-questions", "--prompt-every", "0")
    assert code == 0, output
    assert again[0]["appended"] == 0, "a second run adds nothing"
    assert again[0]["memories"] == report["memories"]


async def test_replay_creates_one_session_per_date(served: str, tmp_path: Path) -> None:
    code, output, figures = await replay(served, OURS, tmp_path / "out.json", "--run", "dated", "--session-per-date", "--limit", "40")

    assert code == 0, output
    [report] = figures
    assert (report["sessions"], report["turns"], report["left_in_session"], report["summarized"]) == (2, 40, 40, 0)


async def test_replay_without_a_server_fails_without_traceback(tmp_path: Path) -> None:
    code, output, _ = await replay("http://127.0.0.1:9", OURS, tmp_path / "out.json", "--wait", "1")
    assert code == 1
    assert "Traceback" not in output
