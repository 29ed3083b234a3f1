"""Test that the archived Python client from PyPI works unchanged with our server.

`make dev` installs it into `.venvs/oldclient`, where `oldclient_program.py` calls every HTTP method
in the client's source.
"""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.compat.archived_clients.conftest import Report, RunProgram
from tests.compat.contract.differences import methods_left_out
from tests.registrations import parts, registrations
from tests.support.cli import ROOT, clean_environment

PYTHON = ROOT / ".venvs" / "oldclient" / "bin" / "python"
PROGRAM = ROOT / "tests" / "compat" / "archived_clients" / "oldclient_program.py"
PINNED = "0.14.0"


@pytest.fixture(scope="module")
def environment() -> None:
    """Install the client if `make dev` has not done so."""
    subprocess.run([ROOT / "scripts" / "venv.sh", "oldclient"], check=True, env=clean_environment())


@pytest.fixture(scope="module")
async def report(environment: None, run_program: RunProgram) -> Report:
    return await run_program(str(PYTHON), "-I", str(PROGRAM), more=tuple(parts("oldclient_part.py")))


def test_pypi_client_gets_the_answers_it_expects(report: Report) -> None:
    assert report["failures"] == {}, "\n".join(report["failures"].values())
    assert len(report["scenarios"]) == 18 + sum(one.old_scenarios for one in registrations())


def test_program_calls_every_http_method_of_the_pypi_client(report: Report) -> None:
    assert report["version"] == PINNED
    assert {name for name in report["talking"] if not report["requests"].get(name)} == methods_left_out()
    assert len(report["talking"]) == 38
    assert {"put_working_memory", "resolve_tool_calls", "search_all_long_term_memories"} <= set(report["talking"])


def test_lock_pins_the_client_with_hashes_and_without_an_index() -> None:
    lock = (ROOT / "locks/oldclient.lock").read_text()
    assert f"agent-memory-client=={PINNED} " in lock
    assert "http" not in re.sub(r"^http(x|core)==", "", lock, flags=re.MULTILINE)
    packages = re.findall(r"^[\w-]+==", lock, re.MULTILINE)
    assert len(re.findall(r"^\S+==.* \\\n    --hash=sha256:", lock, re.MULTILINE)) == len(packages) > 10
