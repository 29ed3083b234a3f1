"""Charts of server load over time. Axes and values require JavaScript."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

PERIODS = ("hour", "day")
# The lines in each chart (fields in the history), and whether its caption shows a sum instead of the last value.
_LINES: dict[str, tuple[tuple[str, ...], bool]] = {
    "memories": (("memories",), False),
    "sessions": (("sessions",), False),
    "users": (("users",), False),
    "requests": (("requests", "failed"), True),
    "times": (("median_ms", "p95_ms"), False),
    "pending": (("pending",), False),
    "model_tokens": (("model_tokens",), True),
    "healthy": (("healthy",), False),
    "dead": (("dead",), False),
    "oldest": (("oldest_seconds",), False),
}
# Totals hardly change in an hour, so their scale does not begin with 0.
_TOTALS = ("memories", "sessions")
_UNITS = {"times": "ms", "healthy": "%", "oldest": "s"}


def charts_of(history: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the given charts, or [] if the caller is not allowed to see the history."""
    return [_chart(name, history) for name in names] if history is not None else []


def _chart(name: str, history: Any) -> dict[str, Any]:
    """Return a chart. `data` is JSON for the script. `paths` are SVG paths in a 100 × 100 box."""
    lines, is_sum = _LINES[name]
    points = history["points"]
    factor = 100 if name == "healthy" else 1
    rows = [[None if point.get(line) is None else factor * point[line] for point in points] for line in lines]
    values = [value for row in rows for value in row if value is not None]
    low, high = _scale(values, from_zero=name not in _TOTALS)
    unit = _UNITS.get(name, "")
    main = [value for value in rows[-1 if name == "times" else 0] if value is not None]
    value = (sum(main) if is_sum else main[-1]) if main else None
    begin = datetime.fromisoformat(points[0]["at"]).timestamp() if points else 0
    data = {"begin": begin, "step": history["step_seconds"], "rows": rows, "low": low, "high": high, "unit": unit}
    return {
        "name": name,
        "lines": lines,
        "value": format_value(value, unit),
        "least": format_value(min(values, default=None), unit),
        "most": format_value(max(values, default=None), unit),
        "data": json.dumps(data),
        "paths": [_path(row, low, high) for row in rows],
    }


def format_value(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    text = f"{value:,.1f}" if unit == "ms" and value < 10 else f"{value:,.0f}"
    return f"{text} {unit}".rstrip()


def _scale(values: Sequence[float], *, from_zero: bool) -> tuple[float, float]:
    low, high = (0.0 if from_zero else min(values, default=0.0)), max(values, default=0.0)
    span = max(high - low, 1.0)
    power = 10 ** math.floor(math.log10(span / 2))
    step = max(next(power * each for each in (1, 2, 5, 10) if power * each >= span / 2), 1.0)
    low = math.floor(low / step) * step
    return low, max(math.ceil(high / step) * step, low + step)


def _path(row: Sequence[float | None], low: float, high: float) -> str:
    parts: list[str] = []
    before: float | None = None
    for number, value in enumerate(row):
        if value is not None:
            x, y = 100 * number / max(len(row) - 1, 1), 100 - 100 * (value - low) / (high - low)
            # A point without neighbors is a short line.
            parts.append(f"{'M' if before is None else 'L'}{x:.1f} {y:.1f}" + ("h.1" if before is None else ""))
        before = value
    return "".join(parts)
