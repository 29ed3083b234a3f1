"""Format data as human-readable text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast


def counted(counts: Mapping[str, int]) -> str:
    """Return counts as text, such as `1 memory, 2 sessions`, or `nothing`. Omit zeros."""
    return ", ".join(f"{count} {_noun(name.replace('_', ' '), count)}" for name, count in counts.items() if count) or "nothing"


def _noun(name: str, count: int) -> str:
    singular = f"{name.removesuffix('ies')}y" if name.endswith("ies") else name.removesuffix("s")
    if count == 1:
        return singular
    return f"{singular.removesuffix('y')}ies" if singular.endswith("ry") else f"{singular}s"


def shorten(text: str, most: int = 100) -> str:
    """Shorten text to a single line of about `most` characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else (text[:most].rpartition(" ")[0] or text[:most]) + " …"


def table(rows: Sequence[Sequence[object]], indent: str = "") -> list[str]:
    """Return a line for each row, with aligned columns. Integers are right-aligned."""
    widths = [max(len(str(cell)) for cell in column) for column in zip(*rows, strict=True)]
    padded = ([f"{cell!s:{'>' if isinstance(cell, int) else '<'}{width}}" for cell, width in zip(row, widths, strict=True)] for row in rows)
    return [f"{indent}{'  '.join(cells)}".rstrip() for cells in padded]


def describe(data: Any, name: str = "") -> list[str]:
    """Format JSON data as lines such as `messages.1.role: user`. Omit empty values."""
    if isinstance(data, list) and not any(isinstance(each, dict | list) for each in cast("list[Any]", data)):
        data = ", ".join(map(str, cast("list[Any]", data)))
    if not isinstance(data, dict | list):
        return [] if data in (None, "") else [f"{name}: {data}" if name else str(data)]
    items = cast("dict[Any, Any]", data).items() if isinstance(data, dict) else enumerate(cast("list[Any]", data), 1)
    return [line for key, value in items for line in describe(value, f"{name}.{key}" if name else str(key))]
