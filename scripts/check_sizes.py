"""Fails when a source file is longer than 500 lines. A longer file has more than one job."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMITS = dict.fromkeys(("agent_memory", "worker", "client", "scripts", "examples", "benchmarks", "tests"), 500)


def too_long(root: Path) -> list[str]:
    """One line for each file of `root` over its limit."""
    found: list[str] = []
    for folder, limit in LIMITS.items():
        for path in sorted((root / folder).rglob("*.py")):
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines > limit:
                found.append(f"{path.relative_to(root)}: {lines} lines, the limit is {limit}")
    return found


def main() -> int:
    problems = too_long(ROOT)
    print("\n".join(problems) or "file sizes: ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
