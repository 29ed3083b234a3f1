"""Print a Markdown table of all Redis keys: `python scripts/reference/key_table.py`.

The site shows the table on docs/running/redis-keys.md. The rows come from the table in `keyspace.py` and from the
features' `KeySpace` entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent_memory.feature_list import FEATURES
from agent_memory.foundation.storage import keyspace

_SHARED = re.compile(r"^am:\{0\}:(\S+) +(?:(string|hash|list|set|zset|index) +)?(.+?)(?:  +(.+))?$", re.MULTILINE)


def table() -> str:
    """Return a table with one row per kind of key."""
    rows = [f"| {feature} | `{name}` | {kind} | {_cell(holds)} | {_cell(lifetime)} |" for feature, name, kind, holds, lifetime in _keys()]
    return "\n".join(["| feature | key | type | content | lifetime |", "|---|---|---|---|---|", *rows])


def _keys() -> Iterator[tuple[str, str, str, str, str]]:
    for name, kind, holds, lifetime in _SHARED.findall(keyspace.__doc__ or ""):
        yield "shared", name, kind, holds, lifetime
    for feature in FEATURES:
        for space in feature.keys:
            yield feature.name, space.name, space.type, space.holds, space.lifetime


def _cell(text: str) -> str:
    """Format text for a table cell. Names in angle brackets become code."""
    return re.sub(r'"([^"]*<[^"]*)"', r"`\1`", text).replace("|", "\\|")


if __name__ == "__main__":
    print(table())
