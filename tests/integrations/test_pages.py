"""Run the programs on the framework pages exactly as written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integrations.conftest import ROOT, ModelServer

README = ROOT / "README.md"
# tests/interfaces/typescript runs the TypeScript programs, with npm packages.
PAGES = [page for page in sorted((ROOT / "docs" / "integrations").glob("*.md")) if "```python" in page.read_text("utf-8")]
FRAMEWORKS = {
    "frameworks": ["langchain", "langgraph", "mem0", "openai-agents", "supermemory"],
    "frameworks-2": ["agent-framework", "agentscope-2", "google-adk", "haystack", "model-clients", "pydantic-ai"],
    "frameworks-3": ["agentscope", "crewai", "llama-index"],
}
"""The pages whose programs run in each environment."""
HERE = [page for page in PAGES if page.stem in FRAMEWORKS[Path(sys.prefix).name]]


def run(*command: str, said: str = "", **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_BASE") and name != "OPENAI_API_KEY"}
    done = subprocess.run(
        [sys.executable, *command], input=said, env=kept | environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_integration_page_has_an_environment() -> None:
    assert sorted(name for names in FRAMEWORKS.values() for name in names) == sorted(page.stem for page in PAGES)


@pytest.mark.parametrize("page", HERE, ids=lambda page: page.stem)
def test_program_on_an_integration_page_prints_the_answer(page: Path, server_url: str, model: ModelServer, tmp_path: Path) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    file = tmp_path / "program.py"
    file.write_text(program.replace("http://127.0.0.1:8000", server_url), "utf-8")
    model.script += ["You keep bees."]
    # By default, the Agents SDK uses OpenAI's other API.
    asked = (
        "from agents import set_default_openai_api\nset_default_openai_api('chat_completions')\n" if page.stem == "openai-agents" else ""
    )
    file.write_text(asked + file.read_text("utf-8"), "utf-8")
    printed = run(str(file), OPENAI_BASE_URL=model.url, OPENAI_API_BASE=model.url, OPENAI_API_KEY="sk-test-0000")
    # Programs for compatible APIs show memories; CrewAI draws frames around the answer.
    wanted = "I keep bees." if page.stem in ("mem0", "supermemory") else "You keep bees."
    lines = printed.strip().splitlines()
    assert wanted in printed if page.stem == "crewai" else lines == [wanted], printed


@pytest.mark.skipif(Path(sys.prefix).name != "frameworks", reason="one environment is enough")
def test_openai_program_of_the_readme_shows_the_model_the_memory(server_url: str, model: ModelServer, tmp_path: Path) -> None:
    programs = re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    file = tmp_path / "program.py"
    file.write_text("".join(programs).replace("http://127.0.0.1:8000", server_url).replace('"ada"', '"readme"'), "utf-8")
    model.script += ["No peanuts."]
    printed = run(str(file), OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-test-0000")
    assert printed.strip().endswith("No peanuts.")
    assert "I am allergic to peanuts." in str(model.asked[-1])
