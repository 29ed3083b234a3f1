"""Test the CPU quota files that the benchmark writes for cgroup v1 and v2 and removes afterward."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.measurement.quota import limited


@pytest.fixture(autouse=True)
def like_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    # The kernel removes a group together with its files.
    monkeypatch.setattr(Path, "rmdir", lambda path: shutil.rmtree(path))


def test_cgroup_v1_writes_period_and_quota_files(tmp_path: Path) -> None:
    parent = tmp_path / "cpu"
    parent.mkdir()
    (parent / "cpu.cfs_quota_us").write_text("-1")
    with limited([11, 12], 0.25, tmp_path) as held:
        assert held
        for pid in ("11", "12"):
            group = parent / f"agent-memory-bench-{pid}"
            assert {file.name: file.read_text() for file in group.iterdir()} == {
                "cpu.cfs_period_us": "50000",
                "cpu.cfs_quota_us": "12500",
                "cgroup.procs": pid,
            }
    assert sorted(file.name for file in parent.iterdir()) == ["cgroup.procs", "cpu.cfs_quota_us"]


def test_cgroup_v2_writes_one_cpu_max_file(tmp_path: Path) -> None:
    (tmp_path / "cgroup.subtree_control").write_text("cpuset cpu memory\n")
    with limited([11], 0.5, tmp_path) as held:
        assert held
        assert (tmp_path / "agent-memory-bench-11" / "cpu.max").read_text() == "25000 50000"
    assert (tmp_path / "cgroup.procs").read_text() == "11"
    assert not (tmp_path / "agent-memory-bench-11").exists()


def test_unsupported_quota_leaves_no_groups(tmp_path: Path) -> None:
    with limited([11], 0.5, tmp_path) as held:
        assert not held
    (tmp_path / "cgroup.subtree_control").write_text("memory\n")
    with limited([11], 0.5, tmp_path) as held:
        assert not held
    (tmp_path / "cgroup.subtree_control").write_text("cpu\n")
    (tmp_path / "agent-memory-bench-12").mkdir()  # another program's group
    with limited([11, 12], 0.5, tmp_path) as held:
        assert not held
        assert not (tmp_path / "agent-memory-bench-11").exists()
