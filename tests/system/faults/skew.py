"""Simulate wrong clocks with a preloaded C library, if there is a C compiler."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

_SOURCE = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
long skew_seconds = 0;
int clock_gettime(clockid_t id, struct timespec *now) {
  int result = syscall(SYS_clock_gettime, id, now);
  if (!result && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec += skew_seconds;
  return result;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec exact;
  if (clock_gettime(CLOCK_REALTIME, &exact)) return -1;
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *now) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (now) *now = exact.tv_sec;
  return exact.tv_sec;
}
"""


def library(folder: Path) -> Path | None:
    """Compile a library that shifts a process's clock. Return None if that fails."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    source, built = folder / "skew.c", folder / "skew.so"
    source.write_text(_SOURCE)
    done = subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(built), str(source)], capture_output=True, check=False)
    return built if done.returncode == 0 else None
