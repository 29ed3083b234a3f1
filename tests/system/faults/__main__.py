"""Run the fault harness with `python -m tests.system.faults --seconds 60 --seed 7`.

The exit code is 1 if the run breaks a guarantee.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

import uvloop

from tests.system.faults.run import Plan, run, show

# Draws after which each kind of fault has almost certainly occurred once.
_OF_EACH_KIND = 8


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.system.faults", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=0, help="how long faults are injected under load (60, with kills as long as it takes)"
    )
    parser.add_argument("--seed", default=None, help="replays a run: the same operations and faults (a new one)")
    parser.add_argument("--rate", type=float, default=60, help="operations per second that the clients aim at (60)")
    parser.add_argument("--pause", type=float, default=1.0, help="mean seconds between two faults (1)")
    parser.add_argument("--kills", type=int, default=0, help="only kill -9, until so many of API and worker (0: everything)")
    parser.add_argument("--redis-kills", type=int, default=0, help="and until so many of Redis (0)")
    parser.add_argument("--writes", type=int, default=0, help="go on until so many writes are acknowledged, for four times as long at most")
    parser.add_argument("--durability", choices=["everysec", "strict"], default="everysec", help="what the servers promise (everysec)")
    parser.add_argument("--apis", type=int, default=2)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--json", type=Path, default=None, metavar="OUT", help="also write the figures to a file")
    parser.add_argument("--folder", type=Path, default=None, help="where journal, logs and data go (a temporary one)")
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    seed = given.seed or str(random.SystemRandom().randrange(10**6))
    folder = given.folder or Path(tempfile.mkdtemp(prefix="faults-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}; journal, logs and data in {folder}", flush=True)
    plan = Plan(
        seed,
        given.seconds or max(60.0, _OF_EACH_KIND * given.pause * max(given.kills, given.redis_kills)),
        folder,
        apis=given.apis,
        workers=given.workers,
        durability=given.durability,
        rate=given.rate,
        pause=given.pause,
        kills=given.kills,
        redis_kills=given.redis_kills,
        writes=given.writes,
    )
    begun = time.monotonic()
    outcome = uvloop.run(run(plan))
    print(show(outcome))
    if given.json:
        given.json.write_text(json.dumps({**outcome.summary(), "fault log": outcome.fault_log}, indent=2, ensure_ascii=False))
    (folder / "faults.log").write_text("\n".join(outcome.fault_log) + "\n")
    broken = len(outcome.violations)
    verdict = f"{broken} promises broken, see {folder}" if broken else "every promise kept"
    print(f"{time.monotonic() - begun:.0f} s in all; {verdict}; seed {seed}")
    if not broken and given.folder is None:
        shutil.rmtree(folder)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
