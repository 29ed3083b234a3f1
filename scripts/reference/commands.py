"""Generate the command-line reference as Markdown with Typer's own generator."""

from __future__ import annotations

import re
import subprocess
import sys

_TITLE = "# Commands and options"
_INTRODUCTION = "For people who look up an option. [Command line](clients/cli.md) has examples and the exit codes."


def page() -> str:
    command = [sys.executable, "-m", "typer", "agent_memory.interfaces.cli.app", "utils", "docs", "--name", "agent-memory"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    _, _, rest = text.partition("\n")
    # The lists of commands only repeat the page's menu, with shortened descriptions.
    rest = re.sub(r"\*\*Commands\*\*:\n\n(?:\* .*\n)+\n?", "", rest)
    # "[env: PORT]" is not a link.
    rest = re.sub(r"\[(env: \w+)\]", r"(`\1`)", rest)
    return f"{_TITLE}\n\n{_INTRODUCTION}\n{rest}"


if __name__ == "__main__":
    print(page())
