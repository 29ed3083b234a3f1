"""`python -m benchmarks run|compare|show`. A run takes minutes and wants a machine that does nothing else."""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvloop

from benchmarks import goals, plot, report
from benchmarks.runner import Plan, run


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part.replace("k", "000").replace("M", "000000")) for part in text.split(","))


def main() -> None:
    """Reads the arguments and does what they say."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="measure everything and print the tables")
    running.add_argument("--memories", type=_numbers, default=Plan.memories, help="sizes of the store, rising: 1k,10k,100k,1M")
    running.add_argument("--concurrency", type=_numbers, default=Plan.concurrency)
    running.add_argument("--requests", type=int, default=Plan.requests, help="requests of each series")
    running.add_argument("--turns", type=int, default=Plan.turns, help="chat turns of each series")
    running.add_argument("--no-local", action="store_true", help="without the local model")
    running.add_argument("--out", type=Path, default=Path("bench.json"), help="the figures; tables and picture stand beside it")
    comparing = commands.add_parser("compare", help="two results beside each other")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    showing = commands.add_parser("show", help="the tables of a result")
    showing.add_argument("result", type=Path)
    given = parser.parse_args()
    if given.command == "compare":
        print(report.compare(json.loads(given.before.read_text()), json.loads(given.after.read_text())))
    elif given.command == "show":
        print(_tables(json.loads(given.result.read_text())))
    else:
        _run(given)


def _run(given: argparse.Namespace) -> None:
    plan = Plan(given.memories, given.concurrency, given.requests, not given.no_local, given.turns)
    # The client runs on the same loop as the servers, or it would be the slowest part.
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    found = asyncio.run(run(plan, lambda line: print(line, file=sys.stderr, flush=True)))
    found["machine"] = {
        "python": platform.python_version(),
        "cpu": platform.machine(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    given.out.write_text(json.dumps(found, indent=1))
    given.out.with_suffix(".md").write_text(_tables(found))
    given.out.with_suffix(".svg").write_text(plot.svg(found))
    print(_tables(found))


def _tables(found: dict[str, Any]) -> str:
    return f"{goals.markdown(found)}\n{report.markdown(found)}"


if __name__ == "__main__":
    main()
