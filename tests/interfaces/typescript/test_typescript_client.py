"""Run the TypeScript client's tests, and check its types, package and documented programs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.docs.pages import BASE_URL, Block, blocks
from tests.interfaces.typescript.conftest import MODULES, PACKAGE, Project, run
from tests.support.lookalike import Lookalike

pytestmark = pytest.mark.integrations
FILES = sorted((PACKAGE / "test").glob("*.test.ts"))
PROGRAMS = blocks("ts")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.removesuffix(".test.ts"))
async def test_client_test_suite_passes(file: Path, node: Path, server_url: str) -> None:
    printed = await run(node, "--test", "--test-reporter=tap", "--test-timeout=100000", file, AGENT_MEMORY_URL=server_url)
    assert "# fail 0" in printed
    assert "# pass 0" not in printed
    assert "# skipped 0" in printed


async def test_client_passes_type_check_and_formatter(node: Path) -> None:
    await run(node, MODULES / "typescript" / "bin" / "tsc", "--noEmit")
    await run(node, MODULES / "prettier" / "bin" / "prettier.cjs", "--check", "src", "test")


async def test_package_contains_only_build_output_and_readme(project: Project) -> None:
    names = {file["path"] for file in project.packed["files"]}
    modules = {path.stem for path in (PACKAGE / "src").glob("*.ts")}
    assert names == {"README.md", "package.json", *(f"dist/{module}{end}" for module in modules for end in (".js", ".d.ts"))}


async def test_strict_typescript_program_compiles_and_runs_with_the_package(project: Project, server_url: str) -> None:
    program = f"""
import {{ MemoryClient, MemoryNotFoundError, type Session }} from "agent-memory-client";

const client = new MemoryClient({{ baseUrl: "{server_url}" }});
const session: Session = await client.workingMemory.put("package", {{ messages: [{{ role: "user", content: "hi" }}] }});
// @ts-expect-error: there is no such field
await client.longTermMemory.search({{ txt: "x" }}).catch(() => undefined);
await client.workingMemory.get("nobody's").catch((error) => console.log(error instanceof MemoryNotFoundError, session.messages.length));
"""
    file = project.write("strict", program)
    assert (await run(project.node, file)).strip() == "true 1"
    await project.check(file)


async def test_package_loads_without_other_packages(project: Project, tmp_path: Path) -> None:
    shutil.copytree(project.folder / "node_modules" / "agent-memory-client", tmp_path / "node_modules" / "agent-memory-client")
    names = "console.log(Object.keys(await import('agent-memory-client/vercel-ai')), 'MemoryClient' in await import('agent-memory-client'))"
    printed = await run(project.node, "--input-type=module", "--eval", names, cwd=tmp_path)
    assert printed.strip() == "[ 'memoryMiddleware' ] true"


def test_version_is_the_same_everywhere() -> None:
    package = json.loads((PACKAGE / "package.json").read_text("utf-8"))
    lock = json.loads((PACKAGE / "package-lock.json").read_text("utf-8"))
    assert {lock["version"], lock["packages"][""]["version"]} == {package["version"]}
    assert f'export const VERSION = "{package["version"]}";' in (PACKAGE / "src" / "transport.ts").read_text("utf-8")


def test_lock_has_hashes_and_no_hosts() -> None:
    packages = json.loads((PACKAGE / "package-lock.json").read_text("utf-8"))["packages"]
    installed = {name: entry for name, entry in packages.items() if name}
    assert [name for name, entry in installed.items() if "integrity" not in entry or "resolved" in entry] == []
    assert len(installed) > 5


@pytest.mark.parametrize("program", PROGRAMS, ids=map(str, PROGRAMS))
async def test_typescript_program_of_the_docs_runs(program: Block, project: Project, server_url: str, running_lookalike: Lookalike) -> None:
    file = project.write(f"page-{program.page.stem}-{program.line}", program.text.replace(BASE_URL, server_url))
    printed = await run(project.node, file, OPENAI_BASE_URL=running_lookalike.url, OPENAI_API_KEY="sk-test-0000")
    assert printed.strip(), "an example shows something"
    if program.page.parent.name == "integrations":
        assert "I keep bees in Oslo." in printed, "the look-alike says what its system message holds"


async def test_typescript_programs_of_the_docs_pass_the_type_check(project: Project) -> None:
    files = [project.write(f"types-{program.page.stem}-{program.line}", program.text) for program in PROGRAMS]
    # Some of the SDK's own types need packages that it does not install.
    await project.check(*files, options=["--skipLibCheck"])
