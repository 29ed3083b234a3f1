"""Write the table of all keys into docs/redis-keys.md: `python scripts/key_table.py`.

`--check` writes nothing and returns exit code 1 if the page is not current. The rows come from the table in `keyspace.py` and from the
`KeySpace` entries of the features.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from agent_memory.feature_list import FEATURES
from agent_memory.foundation.storage import keyspace

PAGE = Path(__file__).resolve().parent.parent / "docs" / "redis-keys.md"
BEGIN, END = "<!-- keys: begin -->", "<!-- keys: end -->"
_SHARED = re.compile(r"^am:\{0\}:(\S+) +(?:(string|hash|list|set|zset|index) +)?(.+?)(?:  +(.+))?$", re.MULTILINE)


def main() -> int:
    """Write or check the page. Return the exit code."""
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    wanted = f"{head}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"
    if "--check" not in sys.argv:
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    if text != wanted:
        print("docs/redis-keys.md is not current: run python scripts/key_table.py", file=sys.stderr)
    return int(text != wanted)


def table() -> str:
    """Return a table with a row for each kind of key."""
    rows = [f"| {feature} | `{name}` | {kind} | {_cell(holds)} | {_cell(lifetime)} |" for feature, name, kind, holds, lifetime in _keys()]
    return "\n".join(["| feature | key | type | content | lifetime |", "|---|---|---|---|---|", *rows])


def _keys() -> Iterator[tuple[str, str, str, str, str]]:
    for name, kind, holds, lifetime in _SHARED.findall(keyspace.__doc__ or ""):
        yield "shared", name, kind, holds, lifetime
    for feature in FEATURES:
        for space in feature.keys:
            yield feature.name, space.name, space.type, space.holds, space.lifetime


def _cell(text: str) -> str:
    """Return text for a table's cell. Markdown would swallow names in angle brackets."""
    return re.sub(r'"([^"]*<[^"]*)"', r"`\1`", text).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
