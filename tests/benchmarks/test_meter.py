"""Test the benchmark's measurements of a process."""

from __future__ import annotations

import os
import time

import pytest

from benchmarks.measurement import meter


def test_cpu_time_matches_the_process_clock() -> None:
    before = time.process_time()
    counted = meter.cpu_seconds(os.getpid())
    assert before <= counted <= time.process_time()


def test_cpu_time_falls_back_to_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> float:
        raise OSError

    used = time.process_time()
    while time.process_time() < used + 0.02:  # more than one tick
        pass
    monkeypatch.setattr(meter.time, "clock_gettime", refuse)
    assert 0.01 <= meter.cpu_seconds(os.getpid()) <= time.process_time() + 0.01
