"""Start a server for an evaluation in a separate process with a temporary embedded Redis."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agent_memory.foundation.core.errors import StartupError
from agent_memory.interfaces.cli.output import report, shown_server

_LISTENS = "agent-memory listens on "
_END_SECONDS = 30.0


@contextmanager
def evaluation_server(url: str | None = None, settings: Mapping[str, str] | None = None) -> Generator[str, None, None]:
    """Yield the given URL, or start a server with an empty Redis and yield its URL.

    The new server inherits the environment except for the Redis settings. `settings` overrides
    environment variables; an empty string unsets one. Raises StartupError if the server does not
    start.
    """
    if url is not None:
        report(f"server {shown_server(url)}")
        yield url
        return
    with tempfile.TemporaryDirectory(prefix="agent-memory-eval-") as folder, (Path(folder) / "log").open("w+", encoding="utf-8") as log:
        command = [
            sys.executable,
            "-m",
            "agent_memory.interfaces.cli.app",
            "serve",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--data-dir",
            f"{folder}/data",
        ]
        elsewhere = {"REDIS_URL", "EMBEDDED_REDIS_PORT", "KEY_PREFIX"}
        changed = {name: value for name, value in (settings or {}).items() if value}
        without = elsewhere.union(settings or {})
        environment = {name: value for name, value in os.environ.items() if name.upper() not in without} | changed
        # The folder has no .env. The server has its own session, so Ctrl-C in the terminal does not reach it. We stop
        # it ourselves.
        process = subprocess.Popen(
            command, env=_with_our_path(environment), cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
        try:
            own = _announced(process)
            report(f"server {shown_server(own)}")
            yield own
        except StartupError as error:
            if process.poll() is not None:  # report why the server does not answer
                raise StartupError(f"the server for the evaluation ended: {_last_words(log.name)}") from error
            raise
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _with_our_path(environment: dict[str, str]) -> dict[str, str]:
    """Set PYTHONPATH to absolute paths, so that the working directory does not matter."""
    return {**environment, "PYTHONPATH": os.pathsep.join(str(Path(entry or ".").absolute()) for entry in sys.path)}


def _announced(process: subprocess.Popen[str]) -> str:
    """Return the URL that the server prints. Raises StartupError if the server exits first."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(_LISTENS):
            return line.removeprefix(_LISTENS).split()[0]
    process.wait()
    raise StartupError("it printed no URL")


def _last_words(log: str) -> str:
    """Return the last log message, including its indented continuation lines."""
    lines = Path(log).read_text(encoding="utf-8").strip().splitlines()
    first = max((number for number, line in enumerate(lines) if not line.startswith("    ")), default=0)
    return " ".join(line.strip() for line in lines[first:]).removeprefix("agent-memory: ") or "it printed nothing"
