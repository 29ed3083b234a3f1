"""Test that requests generated from the OpenAPI document get only documented responses.

The run is short and deterministic. For a long run:
SCHEMATHESIS_EXAMPLES=100 make test ARGS="tests/interfaces/http/test_schemathesis.py -n 0".
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

import httpx
import pytest

from agent_memory.foundation.core.settings import load_settings
from tests.support.stack import stack

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "0"))
PHASES = "examples,coverage,fuzzing,stateful" if EXAMPLES else "fuzzing"
SEED = 20261121
KEY = "the-operator-of-this-server"
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
"""Our own rules reject more input than a schema can describe (sizes in bytes, contradictory filters)."""


@pytest.mark.timeout(3600 if EXAMPLES else 180)
@pytest.mark.parametrize(("mode", "header"), [("disabled", None), ("token", f"Authorization: Bearer {KEY}"), ("token", None)])
async def test_every_operation_answers_as_documented(redis_url: str, tmp_path: Path, mode: str, header: str | None) -> None:
    given = {"KEY_PREFIX": "schemathesis", "MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local", "AUTH_MODE": mode}
    settings = load_settings(**given, **({"AUTH_ADMIN_TOKEN": KEY} if mode == "token" else {}))
    short = 4 if mode == "disabled" else 1
    async with stack(settings, redis_url) as url:
        async with httpx.AsyncClient(timeout=120) as http:  # Schemathesis waits 10 s for the document, which the server generates once.
            (await http.get(f"{url}/openapi.json")).raise_for_status()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json", "--phases", PHASES, "--seed", str(SEED)),
            *("--checks", ",".join(CHECKS), "--max-examples", str(EXAMPLES or short), "--generation-database", "none"),
            *("--continue-on-failure", "--no-color", "--warnings", "off", "--suppress-health-check", "all"),
            *(("--header", header) if header else ()),
            cwd=tmp_path,
            env={
                **os.environ,
                "SCHEMATHESIS_HOOKS": "schemathesis_hooks",
                "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
    said = output.decode()
    assert process.returncode == 0, said[-8000:]
    chosen = re.search(r"Selected: (\d+)/(\d+)\n\s+Tested: (\d+)", said)
    assert chosen, said
    assert chosen[1] == chosen[2] == chosen[3], "all operations"
    assert int(chosen[1]) >= 35
