"""Measure the CPU time and memory of processes, and the CPU time of everything else."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TICK = os.sysconf("SC_CLK_TCK")
_OWN = "client"
_CPUCLOCK_SCHED = 2


def cpu_seconds(pid: int) -> float:
    """Return the user and system CPU seconds of a process, including all threads.

    The process's CPU clock has nanosecond resolution. /proc counts hundredths of a second, which is
    too coarse for a short series.
    """
    try:
        return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)  # as in clock_getcpuclockid(3)
    except OSError:  # the clock is not available
        return _ticked_seconds(pid)


def _ticked_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def children_seconds(pid: int) -> float:
    """Return the CPU seconds of child processes that have exited.

    Redis forks child processes to rewrite its file and to collect garbage.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / _TICK


def rss_bytes(pid: int) -> int:
    """Return a process's resident memory in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _busy_seconds() -> float:
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return (sum(fields[:3]) + fields[5] + fields[6]) / _TICK


def percentile(values: Sequence[float], share: float) -> float:
    """Return the percentile for `share` (0 to 1), interpolated between neighboring values."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@dataclass(frozen=True, slots=True)
class Used:
    """CPU seconds per process, elapsed seconds, and cores used by other processes."""

    cpu: Mapping[str, float]
    wall: float
    foreign: float


class Meter:
    """Measures named groups of processes."""

    def __init__(self, processes: Mapping[str, Sequence[int]]) -> None:
        self._processes = {**processes, _OWN: [os.getpid()]}

    def start(self) -> None:
        """Start or restart measuring."""
        self._cpu = self._read()
        self._busy = _busy_seconds()
        self._began = time.perf_counter()

    def stop(self) -> Used:
        """Return the usage since `start`."""
        wall = time.perf_counter() - self._began
        now = self._read()
        cpu = {name: round(now[name] - self._cpu[name], 6) for name in now}
        foreign = max(_busy_seconds() - self._busy - sum(cpu.values()), 0.0) / wall
        return Used(cpu, wall, round(foreign, 3))

    def rss(self) -> dict[str, int]:
        """Return the current resident memory of each group in bytes."""
        return {name: sum(rss_bytes(pid) for pid in pids) for name, pids in self._processes.items() if name != _OWN}

    def _read(self) -> dict[str, float]:
        return {name: sum(cpu_seconds(pid) for pid in pids) for name, pids in self._processes.items()}


def figures(seconds: Sequence[float], wall: float, cpu: dict[str, float], foreign: float) -> dict[str, Any]:
    """Return times in ms, requests per second, and CPU seconds per 1,000 requests for a series."""
    count = len(seconds)
    return {
        "requests": count,
        "per_second": round(count / wall, 1),
        **{f"p{round(share * 100)}_ms": round(percentile(seconds, share) * 1000, 3) for share in (0.5, 0.95, 0.99)},
        "cpu_per_1000": {name: round(used / count * 1000, 4) for name, used in cpu.items()},
        "foreign_cpu": foreign,
    }
