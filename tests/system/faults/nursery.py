"""Start commands quickly by forking a process that has already imported the server.

Otherwise, each start would take 2.5 s of CPU time. Requests and responses are JSON lines on
stdin and stdout. Forked processes end when the nursery ends.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1


def _say(**words: Any) -> None:
    os.write(1, json.dumps(words).encode() + b"\n")


def _reap() -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _say(ended=pid, code=os.waitstatus_to_exitcode(status))


def _become(order: dict[str, Any], parent: int) -> None:
    """Set up the forked child's environment and run its command."""
    from agent_memory.interfaces.cli.app import main

    os.setsid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.update(order["environment"])
    if order["skew"]:
        ctypes.c_long.in_dll(ctypes.CDLL(None), "skew_seconds").value = order["skew"]
    os.chdir(order["cwd"])
    out = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (out, 1), (out, 2)):
        os.dup2(source, target)
    sys.argv = ["agent-memory", *order["arguments"]]
    code = 1
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _main() -> None:
    import agent_memory.interfaces.cli.run  # noqa: F401
    import agent_memory_worker.main  # noqa: F401

    # The driver reads this pipe; imported code must not print into it.
    waker, alarm = os.pipe()
    os.set_blocking(alarm, False)
    signal.set_wakeup_fd(alarm)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    parent = os.getpid()
    _say(ready=parent)
    waiting = b""
    while True:
        ready, _, _ = select.select([0, waker], [], [])
        if waker in ready:
            os.read(waker, 4096)
            _reap()
        if 0 not in ready:
            continue
        some = os.read(0, 65536)
        if not some:
            return
        waiting += some
        *lines, waiting = waiting.split(b"\n")
        for line in lines:
            order = json.loads(line)
            pid = os.fork()
            if pid == 0:
                os.close(waker)
                os.close(alarm)
                _become(order, parent)
            _say(started=order["name"], pid=pid)


if __name__ == "__main__":
    _main()
