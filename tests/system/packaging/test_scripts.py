"""Test the setup script's stamp and messages, and the size check."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.check_sizes import too_full, too_long
from tests.support.cli import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Create a checkout whose pip only records its arguments."""
    for name in (
        "scripts/venv.sh",
        "locks/server.lock",
        "locks/dev.lock",
        "locks/oldclient.lock",
        "locks/oldclient-others.lock",
        "pyproject.toml",
        "client/pyproject.toml",
        "evaluation/pyproject.toml",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for folder in (".venv", ".venvs/oldclient"):
        python = tmp_path / folder / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text('#!/bin/sh\necho "$@" >> asked\n')
        python.chmod(0o755)
        (tmp_path / folder / ".home").write_text(f"{tmp_path}\n")
    return tmp_path


def venv(checkout: Path, kind: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(checkout / "scripts/venv.sh"), kind], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def asked(checkout: Path) -> list[str]:
    """Return the pip install commands since the last call."""
    file = checkout / "asked"
    lines = [line for line in file.read_text().splitlines() if " install " in line] if file.exists() else []
    file.unlink(missing_ok=True)
    return lines


def test_setup_installs_lock_with_hashes_and_project_without_index(checkout: Path) -> None:
    assert venv(checkout, "run").returncode == 0
    lock, ours = asked(checkout)
    assert "--require-hashes -r locks/server.lock" in lock
    assert "--no-build-isolation --no-index -e client -e ." in ours
    assert all("--no-deps" in line and "--disable-pip-version-check" in line for line in (lock, ours))


def test_setup_runs_again_only_if_the_lock_changed(checkout: Path) -> None:
    venv(checkout, "run")
    asked(checkout)
    assert venv(checkout, "run").stdout == ""
    assert asked(checkout) == []
    assert venv(checkout, "dev").returncode == 0
    assert "locks/dev.lock" in asked(checkout)[0]
    with (checkout / "locks/server.lock").open("a") as lock:
        lock.write("# changed\n")
    assert venv(checkout, "run").returncode == 0
    assert len(asked(checkout)) == 2


def test_setup_regenerates_blocking_client_even_if_all_is_installed(checkout: Path) -> None:
    assert venv(checkout, "run").returncode == 0
    (checkout / "asked").unlink()
    assert venv(checkout, "run").returncode == 0
    assert (checkout / "asked").read_text().splitlines() == ["client/scripts/make_sync.py"]


def test_setup_gives_the_archived_client_its_own_environment(checkout: Path) -> None:
    assert venv(checkout, "oldclient").returncode == 0
    newest, *others = asked(checkout)
    assert "--require-hashes -r locks/oldclient.lock" in newest
    for version, line in zip(("0.9.0", "0.12.6"), others, strict=True):
        folder = f".venvs/oldclient/clients/{version}"
        assert f"--target {folder} --require-hashes -r {folder}.txt" in line
        assert (checkout / f"{folder}.txt").read_text().startswith(f"agent-memory-client=={version} --hash=sha256:")
    assert (checkout / ".venvs" / "oldclient" / ".installed-oldclient").exists()
    assert not (checkout / ".venv" / ".installed-oldclient").exists()
    with (checkout / "pyproject.toml").open("a") as project:
        project.write("# changed\n")
    assert venv(checkout, "oldclient").stdout == ""
    assert asked(checkout) == []


def pip_that_says(checkout: Path, said: str, code: int = 0) -> None:
    """Make pip print this text and exit with this code."""
    python = checkout / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\ncase "$*" in *" install "*locks*) printf "{said}"; exit {code};; esac\n')


def test_setup_reports_installation_progress(checkout: Path) -> None:
    count = sum(line[:1].isalnum() for line in (checkout / "locks/server.lock").read_text().splitlines())
    fetched = "".join(f"Collecting p{n}==1\\n  Downloading p{n}.whl\\n" for n in range(count))
    pip_that_says(checkout, fetched + "Installing collected packages: p, q, r\\n")
    done = venv(checkout, "run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "Installing locks/server.lock into .venv",
        *(f"  fetched {n} of at most {count} packages" for n in range(25, count + 1, 25)),
        "  installing 3 packages",
    ]


def test_failed_installation_leaves_no_stamp(checkout: Path) -> None:
    pip_that_says(checkout, "Collecting p==1\\n", code=3)
    assert venv(checkout, "run").returncode == 3
    assert not (checkout / ".venv" / ".installed-run").exists()


def test_setup_names_the_required_python_version(checkout: Path, tmp_path: Path) -> None:
    shutil.rmtree(checkout / ".venv")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "cat", "dirname", "cksum", "pwd"):
        found = shutil.which(name)
        assert found
        (programs / name).symlink_to(found)
    result = venv(checkout, "run", PATH=str(programs), PYTHON="")
    assert result.returncode != 0
    assert "Python 3.11 or newer is needed" in result.stderr


def test_size_check_reports_long_files(tmp_path: Path) -> None:
    for folder, lines in (("agent_memory", 501), ("tests", 500), ("worker", 1)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text("x = 1\n" * lines)
    assert list(too_long(tmp_path)) == ["agent_memory/a.py: 501 lines, the limit is 500"]


def test_size_check_reports_folders_with_too_many_files(tmp_path: Path) -> None:
    for folder, count in (("worker/room", 16), ("agent_memory", 15), ("tests/room", 20)):
        (tmp_path / folder).mkdir(parents=True)
        for name in ("__init__", *map(str, range(count))):
            (tmp_path / folder / f"{name}.py").touch()
    assert list(too_full(tmp_path)) == ["worker/room: 16 files in one folder, the limit is 15"]
