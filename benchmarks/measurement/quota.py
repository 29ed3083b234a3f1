"""Limit a process to a share of one core using cgroups (v1 or v2). Needs root."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

# Long enough for several requests, because caches are cold after each pause. Short enough for many periods per second.
_PERIOD_MICROSECONDS = 50_000
_ROOT = Path("/sys/fs/cgroup")


@contextlib.contextmanager  # pyright: ignore[reportDeprecated]
def limited(pids: Sequence[int], share: float, root: Path = _ROOT) -> Iterator[bool]:
    """Limit each process to `share` of a core during the `with` block. Yield False on failure."""
    old, new = (root / "cpu" / "cpu.cfs_quota_us").exists(), _hands_down(root)
    with contextlib.ExitStack() as stack:
        is_limited = old or new
        try:
            for pid in pids if is_limited else ():
                parent = root / "cpu" if old else root
                group = parent / f"agent-memory-bench-{pid}"
                group.mkdir()
                stack.callback(_undone, parent, group, pid)
                _hold(group, pid, round(share * _PERIOD_MICROSECONDS), old=old)
        except OSError:
            is_limited = False
            stack.close()
        yield is_limited


def _hands_down(root: Path) -> bool:
    """True if child groups of the v2 root can use the CPU controller."""
    with contextlib.suppress(OSError):
        return "cpu" in (root / "cgroup.subtree_control").read_text().split()
    return False


def _hold(group: Path, pid: int, quota: int, *, old: bool) -> None:
    if old:
        (group / "cpu.cfs_period_us").write_text(str(_PERIOD_MICROSECONDS))
        (group / "cpu.cfs_quota_us").write_text(str(quota))
    else:
        (group / "cpu.max").write_text(f"{quota} {_PERIOD_MICROSECONDS}")
    (group / "cgroup.procs").write_text(str(pid))


def _undone(parent: Path, group: Path, pid: int) -> None:
    with contextlib.suppress(OSError):  # the process has ended
        (parent / "cgroup.procs").write_text(str(pid))
    group.rmdir()
