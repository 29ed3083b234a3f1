"""Test F1, F2, F3, F5, F8, F12 and F13 together for about a minute.

For longer runs, use `python -m tests.system.faults`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import ROOT
from tests.system.faults.fleet import environment

pytestmark = pytest.mark.slow


@pytest.mark.timeout(420)
def test_mixed_faults_for_a_minute_break_no_guarantee(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "figures.json"
    command = [sys.executable, "-m", "tests.system.faults", "--seconds", "40", "--seed", "20261121", "--pause", "0.8", "--writes", "200"]
    command += ["--json", str(out), "--folder", str(tmp_path / "run")]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=400, check=False)
    with capsys.disabled():
        print(f"\n{done.stdout}")
    figures = json.loads(out.read_text()) if out.exists() else {}
    assert done.returncode == 0, f"{figures.get('violations')}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}\n{_tracebacks(tmp_path)}"
    assert figures["faults injected"] >= 20
    assert figures["writes acknowledged"] >= 200
    assert (figures["lost"], figures["duplicated"], figures["resurrected"], figures["wrong"]) == (0, 0, 0, 0)
    assert figures["given up"] == []
    assert not [code for code in figures["5xx by code"] if not code.startswith("503 ")]


def _tracebacks(folder: Path) -> str:
    """Return logged errors, since the folder may be gone before anyone reads it."""
    logs = [log.read_text("utf-8", "replace") for log in sorted((folder / "run").glob("api*.log"))]
    unexpected = [text[max(at - 500, 0) : at + 3000] for text in logs if (at := text.find("Traceback")) >= 0]
    return "\n".join([*unexpected, *(log.read_text("utf-8", "replace")[-3000:] for log in sorted((folder / "run").glob("worker*.log")))])
