"""Draw an SVG chart of the API's CPU usage and its limits, by operation."""

from __future__ import annotations

from html import escape
from typing import Any

from benchmarks.reports.report import beside_limits

_STYLE = (
    "<style>text{fill:#1f2328}.page{fill:#fff}@media (prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}}</style>\n"
    '<rect class="page" width="100%" height="100%"/>'
)
_WIDTH, _BAR, _LEFT, _RIGHT, _TOP = 760, 30, 190, 90, 56


def svg(result: dict[str, Any]) -> str:
    """Draw two bars per operation at the lowest concurrency: the server and limits (a) + (b)."""
    rows = [(row, beside) for row in result["operations"] if (beside := beside_limits(result, row))]
    first = min((row["concurrency"] for row, _ in rows), default=1)
    bars = [(row, beside) for row, beside in rows if row["concurrency"] == first]
    most = max((max(row["cpu_per_1000"]["api"], beside["floor_cpu"]) for row, beside in bars), default=1.0)
    scale = (_WIDTH - _LEFT - _RIGHT) / (most or 1.0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_TOP + _BAR * len(bars) + 16}" '
        'font-family="sans-serif" font-size="12">',
        _STYLE,
        '<text x="16" y="22" font-size="15">CPU seconds of the API per 1,000 requests</text>',
        '<rect x="16" y="32" width="10" height="10" fill="#1f6feb"/><text x="30" y="41">agent-memory</text>',
        '<rect x="130" y="32" width="10" height="10" fill="#8c959f"/><text x="144" y="41">bare FastAPI and bare Redis commands</text>',
    ]
    for number, (row, beside) in enumerate(bars):
        y = _TOP + number * _BAR
        ours, floor = row["cpu_per_1000"]["api"], beside["floor_cpu"]
        parts += [
            f'<text x="{_LEFT - 8}" y="{y + 16}" text-anchor="end">{escape(row["operation"])}</text>',
            f'<rect x="{_LEFT}" y="{y}" width="{ours * scale:.1f}" height="11" fill="#1f6feb"/>',
            f'<rect x="{_LEFT}" y="{y + 12}" width="{floor * scale:.1f}" height="11" fill="#8c959f"/>',
            f'<text x="{_LEFT + max(ours, floor) * scale + 8:.1f}" y="{y + 16}">{ours:.2f} · {beside["cpu_ratio"]:.1f}×</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])
