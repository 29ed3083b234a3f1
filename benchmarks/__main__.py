"""Run `python -m benchmarks run|versions|sections|cluster|compare|show`.

A run takes minutes. Use a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from benchmarks import cluster, sections, versions
from benchmarks.reports import document, goals, plot, report
from benchmarks.runner import PARTS, Plan, run

_USUAL = Plan()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part.replace("k", "000").replace("M", "000000")) for part in text.split(","))


def main() -> None:
    """Read the arguments and run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="measure everything and print the tables")
    running.add_argument("--memories", type=_numbers, default=_USUAL.memories, help="sizes of the store, rising: 1k,10k,100k,1M")
    running.add_argument("--concurrency", type=_numbers, default=_USUAL.concurrency)
    running.add_argument("--requests", type=int, default=_USUAL.requests, help="requests of each series")
    running.add_argument("--turns", type=int, default=_USUAL.turns, help="chat turns of each series")
    running.add_argument("--parts", type=_parts, default=PARTS, help=f"only some of {','.join(sorted(PARTS))}")
    running.add_argument("--minutes", type=float, default=_USUAL.minutes, help="after so long nothing new is begun")
    running.add_argument(
        "--quick", action="store_true", help="the goals' rows alone: 10,000 memories, 1 and 32 at one time, 200 requests, no local model"
    )
    running.add_argument("--out", type=Path, default=Path("bench.json"), help="the figures; tables and picture stand beside it")
    comparing = commands.add_parser("compare", help="two results beside each other")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    showing = commands.add_parser("show", help="the tables of a result")
    showing.add_argument("result", type=Path)
    writing = commands.add_parser("document", help="write results (figures of later ones beside the first's) into docs/performance.md")
    writing.add_argument("results", type=Path, nargs="+")
    beside = commands.add_parser("versions", help="two checkouts in turns on one machine: is the later one slower?")
    beside.add_argument("before", type=Path)
    beside.add_argument("after", type=Path, nargs="?", default=Path())
    beside.add_argument("--pairs", type=int, default=versions.Plan.pairs)
    beside.add_argument("--requests", type=int, default=versions.Plan.requests, help="of each series")
    beside.add_argument("--memories", type=int, default=versions.Plan.memories)
    beside.add_argument("--concurrency", type=_numbers, default=versions.Plan.concurrency)
    beside.add_argument("--operations", type=_operations, default=versions.OPERATIONS, help=f"some of {'; '.join(versions.OPERATIONS)}")
    sections_parser = commands.add_parser("sections", help="prompts with profile and blocks beside prompts without; large profiles")
    sections_parser.add_argument("--pairs", type=int, default=sections.Plan.pairs)
    sections_parser.add_argument("--requests", type=int, default=sections.Plan.requests, help="of each series")
    sections_parser.add_argument("--concurrency", type=_numbers, default=sections.Plan.concurrency)
    clustering = commands.add_parser("cluster", help="the server on a Redis Cluster of loopback processes: are all reads whole?")
    for name, default in asdict(cluster.Plan()).items():
        clustering.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    if given.command == "compare":
        print(report.compare(json.loads(given.before.read_text()), json.loads(given.after.read_text())))
    elif given.command == "show":
        print(_tables(json.loads(given.result.read_text())))
    elif given.command == "document":
        document.write([json.loads(path.read_text()) for path in given.results])
    elif given.command == "versions":
        plan = versions.Plan(given.memories, given.pairs, given.requests, given.concurrency, given.operations)
        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())  # pyright: ignore[reportDeprecated]
        say = partial(print, file=sys.stderr, flush=True)
        print(versions.markdown(asyncio.run(versions.compare(given.before, given.after, plan, say))))
    elif given.command == "sections":
        plan = sections.Plan(pairs=given.pairs, requests=given.requests, concurrency=given.concurrency)
        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())  # pyright: ignore[reportDeprecated]
        say = partial(print, file=sys.stderr, flush=True)
        print(versions.markdown(asyncio.run(sections.compare(plan, say)), "without", "with"))
    elif given.command == "cluster":
        sys.exit(_cluster(cluster.Plan(**{name: getattr(given, name) for name in asdict(cluster.Plan())})))
    else:
        sys.exit(_run(given))


def _parts(text: str) -> frozenset[str]:
    parts = frozenset(text.split(","))
    if not parts <= PARTS:
        raise argparse.ArgumentTypeError(f"there are {','.join(sorted(PARTS))}")
    return parts


def _operations(text: str) -> tuple[str, ...]:
    names = tuple(text.split(";"))
    if not set(names) <= set(versions.OPERATIONS):
        raise argparse.ArgumentTypeError(f"there are {'; '.join(versions.OPERATIONS)}")
    return names


def _cluster(plan: cluster.Plan) -> int:
    """Run the cluster benchmark. Return the exit status: 1 if a read was incomplete."""
    with tempfile.TemporaryDirectory(prefix="am-cluster-") as folder:
        result = asyncio.run(cluster.experiment(Path(folder), plan, lambda line: print(line, file=sys.stderr, flush=True)))
    print(cluster.table(result))
    return int(not cluster.whole(result))


def _run(given: argparse.Namespace) -> int:
    """Run the benchmark. Return the exit status: 1 if something could not be measured."""
    plan = Plan(given.memories, given.concurrency, given.requests, given.turns, given.parts, given.minutes)
    if given.quick:
        plan = Plan((10_000,), (1, 32), 200, 100, PARTS - {"local", "two"}, given.minutes)
    # The client uses the same event loop as the servers. Otherwise it would be the slowest part.
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())  # pyright: ignore[reportDeprecated]
    result = asyncio.run(run(plan, lambda line: print(line, file=sys.stderr, flush=True)))
    result["machine"] = {
        "python": platform.python_version(),
        "cpu": platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    given.out.write_text(json.dumps(result, indent=1))
    given.out.with_suffix(".md").write_text(_tables(result))
    given.out.with_suffix(".svg").write_text(plot.svg(result))
    print(_tables(result))
    return int(any(not failure["again"] for failure in result["failures"]))


def _tables(result: dict[str, Any]) -> str:
    return f"{goals.markdown(result)}\n{report.markdown(result)}"


if __name__ == "__main__":
    main()
