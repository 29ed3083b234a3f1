"""The types of the TypeScript client are those of the server's OpenAPI document."""

from __future__ import annotations

import subprocess
import sys

from tests.support.cli import ROOT, clean_environment

SCRIPT = ROOT / "client-ts" / "scripts" / "make_types.py"


def test_the_types_are_what_the_document_gives() -> None:
    program = f"import runpy; print(runpy.run_path({str(SCRIPT)!r})['types'](), end='')"
    command = [sys.executable, "-c", program]
    made = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True, env=clean_environment())
    kept = (ROOT / "client-ts" / "src" / "types.ts").read_text("utf-8")
    assert made.stdout == kept, "python client-ts/scripts/make_types.py writes the types anew"
    assert '"POST /v1/memory/prompt": {' in kept
