"""A picture of one or more reports: recall by the number of memories looked at, as an SVG file that needs nothing to be drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from agent_memory_eval.metrics import CUTS

_WIDTH, _HEIGHT = 720, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 220, 44, 48
_COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#8250df", "#bf8700", "#57606a", "#0e7490", "#be185d")


def svg(title: str, series: Mapping[str, Mapping[str, float]]) -> str:
    """The picture: for each series (a name, and figures that hold R@k) a line through its recall at 5, 10, 20 and 50."""
    shown = {name: figures for name, figures in series.items() if all(f"R@{cut}" in figures for cut in CUTS)}
    across = (_WIDTH - _LEFT - _RIGHT) / (len(CUTS) - 1)
    places = [_LEFT + number * across for number in range(len(CUTS))]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="24" font-size="15">{escape(title)}</text>',
    ]
    for percent in range(0, 101, 20):
        y = _down(percent / 100)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#d0d7de"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{percent} %</text>')
    for cut, x in zip(CUTS, places, strict=True):
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 20}" text-anchor="middle">{cut}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle:.1f}" y="{_HEIGHT - 10}" text-anchor="middle">memories looked at (k)</text>')
    for number, (name, figures) in enumerate(shown.items()):
        parts += _line(number, name, places, [figures[f"R@{cut}"] for cut in CUTS])
    return "\n".join([*parts, "</svg>", ""])


def _down(share: float) -> float:
    return _TOP + (1 - share) * (_HEIGHT - _TOP - _BOTTOM)


def _line(number: int, name: str, places: Sequence[float], shares: Sequence[float]) -> list[str]:
    colour = _COLOURS[number % len(_COLOURS)]
    points = [(x, _down(share)) for x, share in zip(places, shares, strict=True)]
    parts = [f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>']
    parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    y = _TOP + 8 + 20 * number
    key = _WIDTH - _RIGHT + 24
    parts.append(f'<line x1="{key}" y1="{y}" x2="{key + 18}" y2="{y}" stroke="{colour}" stroke-width="2"/>')
    parts.append(f'<text x="{key + 24}" y="{y + 4}">{escape(name)} {100 * shares[1]:.1f} % at 10</text>')
    return parts
