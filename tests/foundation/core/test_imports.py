"""What a command does not need is not imported before it: importing is most of the time in which a server starts."""

from __future__ import annotations

import subprocess
import sys

_ASK = "import sys, agent_memory.interfaces.cli.run; print(sorted({'docket', 'mcp', 'openai', 'onnxruntime'} & sys.modules.keys()))"


def test_the_api_is_imported_without_the_sdks_that_few_requests_need() -> None:
    done = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
