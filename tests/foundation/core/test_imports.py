"""Test that commands import only what they need, because imports take most of the startup time."""

from __future__ import annotations

import subprocess
import sys

_ASK = "import sys, agent_memory.interfaces.cli.run; print(sorted({'docket', 'mcp', 'openai', 'onnxruntime'} & sys.modules.keys()))"


def test_api_import_does_not_import_rarely_needed_sdks() -> None:
    done = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
