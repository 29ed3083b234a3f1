"""The programs on the pages about frameworks run as they stand there, and the example chat remembers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from tests.integrations.conftest import ROOT, ModelServer

# Those of other languages run beside their own tools: tests/interfaces/typescript.
PAGES = [page for page in sorted((ROOT / "docs" / "integrations").glob("*.md")) if "```python" in page.read_text("utf-8")]


def run(*command: str, said: str = "", **environment: str) -> str:
    """What a program prints. Fails when it does."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_BASE") and name != "OPENAI_API_KEY"}
    done = subprocess.run(
        [sys.executable, *command], input=said, env=kept | environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_s_program_runs(page: Path, server_url: str, model: ModelServer, tmp_path: Path) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    file = tmp_path / "program.py"
    file.write_text(program.replace("http://127.0.0.1:8000", server_url), "utf-8")
    model.script += ["You keep bees."]
    # The Agents SDK asks the other API of OpenAI unless told.
    asked = (
        "from agents import set_default_openai_api\nset_default_openai_api('chat_completions')\n" if page.stem == "openai-agents" else ""
    )
    file.write_text(asked + file.read_text("utf-8"), "utf-8")
    printed = run(str(file), OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-test-0000")
    # Those of compatible APIs show what is remembered.
    assert printed.strip() == ("I keep bees." if page.stem in ("mem0", "supermemory") else "You keep bees.")


@pytest.mark.parametrize("with_model", [False, True])
def test_the_chat_remembers_facts_in_another_process(server_url: str, model: ModelServer, *, with_model: bool) -> None:
    user = f"u-{uuid4()}"
    command = [str(ROOT / "examples" / "langgraph_chat.py"), "--base-url", server_url, "--user", user]
    environment = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-test-0000"} if with_model else {}
    model.script += ["Nice!", "- Ada keeps bees in Oslo", "Hi!", "NONE"]
    run(*command, said="I am Ada and keep bees in Oslo.\nhello\n", **environment)
    model.script[:] = ["You keep bees.", "NONE"]
    printed = run(*command, said="Which animals do I keep? Bees?\n", **environment)
    if with_model:
        assert printed.strip() == "You keep bees."
        assert "Ada keeps bees in Oslo" in str(model.asked[-2]["messages"][0])
        assert "NONE" not in str(model.asked[-2]["messages"][0])
    else:
        assert "keep bees in Oslo" in printed
    stranger = run(*command[:-1], f"{user}-2", said="Which animals do I keep? Bees?\n")
    assert "Oslo" not in stranger
