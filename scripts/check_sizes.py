"""Fail if a source file has more than 500 lines or a folder contains too many files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 500
# The maximum number of files in a folder, not counting `__init__.py`.
FILES = dict.fromkeys(("agent_memory", "worker", "client", "scripts", "examples", "benchmarks", "docs"), 15) | {"tests": 20}


def too_long(root: Path) -> Iterator[str]:
    """Yield a message for each Python file that has too many lines."""
    for top in FILES:
        for path in sorted((root / top).rglob("*.py")):
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines > LONGEST:
                yield f"{path.relative_to(root)}: {lines} lines, the limit is {LONGEST}"


def too_full(root: Path) -> Iterator[str]:
    """Yield a message for each folder that contains too many files."""
    for top, limit in FILES.items():
        for folder in sorted({path.parent for path in (root / top).rglob("*") if path.is_file()}):
            if "__pycache__" in folder.parts:
                continue
            count = sum(path.is_file() and path.name != "__init__.py" for path in folder.iterdir())
            if count > limit:
                yield f"{folder.relative_to(root)}: {count} files in one folder, the limit is {limit}"


def main() -> int:
    problems = [*too_long(ROOT), *too_full(ROOT)]
    print("\n".join(problems) or "sizes of files and folders: ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
