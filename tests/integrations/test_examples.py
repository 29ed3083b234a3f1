"""Test that the programs in `examples/` print what `examples/README.md` shows."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.integrations.conftest import ROOT, started_server
from tests.integrations.test_pages import run

README = (ROOT / "examples" / "README.md").read_text("utf-8")
RUNS = [block.strip().split("$ python ")[1:] for block in re.findall(r"^```console\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)]
WHERE = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """Start an empty server, because the programs choose their own user names."""
    with started_server(tmp_path_factory.mktemp("examples")) as url:
        yield url


def printed_by(command: str, said: str, server_url: str) -> list[str]:
    """Return a program's output lines, except blank lines and the prompt."""
    words = [word.replace(WHERE, server_url) for word in shlex.split(command)]
    where = [] if "--url" in words or "trainer" in words[0] else ["--url", server_url]
    told = {"SUPERMEMORY_BASE_URL": server_url, "SUPERMEMORY_API_KEY": "local", "MEM0_TELEMETRY": "False", "COLUMNS": "200"}
    printed = run(str(ROOT / words[0]), *words[1:], *where, said=f"{said}\n", **told)
    return [line.removeprefix("> ").rstrip() for line in printed.splitlines() if line.strip(" >")]


def test_readme_lists_every_example() -> None:
    assert {Path(first.split()[0]).name for first, *_ in RUNS} == {path.name for path in (ROOT / "examples").glob("*.py")}


@pytest.mark.parametrize("runs", RUNS, ids=lambda runs: Path(runs[0].split()[0]).stem)
def test_example_prints_the_output_shown_in_readme(runs: list[str], server_url: str) -> None:
    for each in runs:
        command, said, *shown = each.strip().splitlines()
        # The server recalls statements of the previous run a moment later.
        ends = time.monotonic() + 30
        while (printed := printed_by(command, said, server_url)) != shown and each is not runs[0] and time.monotonic() < ends:
            time.sleep(0.2)
        assert printed == shown
