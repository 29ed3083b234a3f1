"""Run `python -m benchmarks run|versions|sections|cluster|compare|show`.

A run takes several minutes. The machine should otherwise be idle.
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
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="measure everything and print the tables")
    running.add_argument(
        "--memories",
        type=_numbers,
        default=_USUAL.memories,
        help="store sizes in rising order, such as 1k,10k,100k,1M",
    )
    running.add_argument("--concurrency", type=_numbers, default=_USUAL.concurrency)
    running.add_argument("--requests", type=int, default=_USUAL.requests, help="requests in each series")
    running.add_argument("--turns", type=int, default=_USUAL.turns, help="chat turns in each series")
    running.add_argument("--parts", type=_parts, default=PARTS, help=f"run only these parts (default: {','.join(sorted(PARTS))})")
    running.add_argument("--minutes", type=float, default=_USUAL.minutes, help="start no new measurement after this many minutes")
    running.add_argument(
        "--quick",
        action="store_true",
        help="measure only the goals: 10,000 memories, 1 and 32 clients, 200 requests, no local model",
    )
    running.add_argument("--out", type=Path, default=Path("bench.json"), help="file for the figures; tables and a plot go beside it")
    comparing = commands.add_parser("compare", help="print a table that compares two results")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    showing = commands.add_parser("show", help="print the tables of a result")
    showing.add_argument("result", type=Path)
    writing = commands.add_parser("document", help="write results into docs/performance.md; later results add figures that the first lacks")
    writing.add_argument("results", type=Path, nargs="+")
    beside = commands.add_parser("versions", help="compare the speed of two checkouts on one machine")
    beside.add_argument("before", type=Path)
    beside.add_argument("after", type=Path, nargs="?", default=Path())
    beside.add_argument("--pairs", type=int, default=versions.Plan.pairs)
    beside.add_argument("--requests", type=int, default=versions.Plan.requests, help="requests in each series")
    beside.add_argument("--memories", type=int, default=versions.Plan.memories)
    beside.add_argument("--concurrency", type=_numbers, default=versions.Plan.concurrency)
    beside.add_argument(
        "--operations",
        type=_operations,
        default=versions.OPERATIONS,
        help=f"default: {'; '.join(versions.OPERATIONS)}",
    )
    sections_parser = commands.add_parser(
        "sections", help="compare prompts with and without profile and blocks, and large with small profiles"
    )
    sections_parser.add_argument("--pairs", type=int, default=sections.Plan.pairs)
    sections_parser.add_argument("--requests", type=int, default=sections.Plan.requests, help="requests in each series")
    sections_parser.add_argument("--concurrency", type=_numbers, default=sections.Plan.concurrency)
    clustering = commands.add_parser("cluster", help="check that all reads from a Redis Cluster of local processes are complete")
    for name, default in asdict(cluster.Plan()).items():
        clustering.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    if options.command == "compare":
        print(report.compare(json.loads(options.before.read_text()), json.loads(options.after.read_text())))
    elif options.command == "show":
        print(_tables(json.loads(options.result.read_text())))
    elif options.command == "document":
        document.write([json.loads(path.read_text()) for path in options.results])
    elif options.command == "versions":
        plan = versions.Plan(options.memories, options.pairs, options.requests, options.concurrency, options.operations)
        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())  # pyright: ignore[reportDeprecated]
        say = partial(print, file=sys.stderr, flush=True)
        print(versions.markdown(asyncio.run(versions.compare(options.before, options.after, plan, say))))
    elif options.command == "sections":
        plan = sections.Plan(pairs=options.pairs, requests=options.requests, concurrency=options.concurrency)
        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())  # pyright: ignore[reportDeprecated]
        say = partial(print, file=sys.stderr, flush=True)
        print(versions.markdown(asyncio.run(sections.compare(plan, say)), "without", "with"))
    elif options.command == "cluster":
        sys.exit(_cluster(cluster.Plan(**{name: getattr(options, name) for name in asdict(cluster.Plan())})))
    else:
        sys.exit(_run(options))


def _parts(text: str) -> frozenset[str]:
    parts = frozenset(text.split(","))
    if not parts <= PARTS:
        raise argparse.ArgumentTypeError(f"choose from {','.join(sorted(PARTS))}")
    return parts


def _operations(text: str) -> tuple[str, ...]:
    names = tuple(text.split(";"))
    if not set(names) <= set(versions.OPERATIONS):
        raise argparse.ArgumentTypeError(f"choose from {'; '.join(versions.OPERATIONS)}")
    return names


def _cluster(plan: cluster.Plan) -> int:
    """Run the cluster benchmark. Return the exit code: 1 if a read was incomplete."""
    with tempfile.TemporaryDirectory(prefix="am-cluster-") as folder:
        result = asyncio.run(cluster.experiment(Path(folder), plan, lambda line: print(line, file=sys.stderr, flush=True)))
    print(cluster.table(result))
    return int(not cluster.whole(result))


def _run(options: argparse.Namespace) -> int:
    """Run the benchmark. Return the exit code: 1 if a measurement failed."""
    plan = Plan(options.memories, options.concurrency, options.requests, options.turns, options.parts, options.minutes)
    if options.quick:
        plan = Plan((10_000,), (1, 32), 200, 100, PARTS - {"local", "two"}, options.minutes)
    # The client uses the same event loop as the servers. Otherwise it would be the slowest part.
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())  # pyright: ignore[reportDeprecated]
    result = asyncio.run(run(plan, lambda line: print(line, file=sys.stderr, flush=True)))
    result["machine"] = {
        "python": platform.python_version(),
        "cpu": platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    options.out.write_text(json.dumps(result, indent=1))
    options.out.with_suffix(".md").write_text(_tables(result))
    options.out.with_suffix(".svg").write_text(plot.svg(result))
    print(_tables(result))
    return int(any(not failure["again"] for failure in result["failures"]))


def _tables(result: dict[str, Any]) -> str:
    return f"{goals.markdown(result)}\n{report.markdown(result)}"


if __name__ == "__main__":
    main()
