"""Compare measured figures with the minimum values ("floors") in `data/floors.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from agent_memory.foundation.core.errors import StartupError
from agent_memory_eval.report import EVERY, FIGURES, NONE, SetReport

Floors = Mapping[str, Mapping[str, float]]
"""Floors in per cent, by set and figure."""


@dataclass(frozen=True, slots=True)
class FloorResult:
    """A measured figure and its floor, both in percent.

    For sampled questions, `value` is the upper end of the confidence interval.
    """

    figure: str
    floor: float
    value: float

    @property
    def holds(self) -> bool:
        """True if the value, rounded to one decimal place, reaches the floor."""
        return round(self.value, 1) >= self.floor

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'BELOW'} {self.figure}: {self.value:.1f} % (at least {self.floor:g} %)"


def load_floors(path: Path | None) -> Floors:
    """Load floors from a file, or the built-in floors if `path` is None. Raises StartupError."""
    try:
        source = path or resources.files("agent_memory_eval").joinpath("data", "floors.toml")
        floors: dict[str, Any] = tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StartupError(f"{path} cannot be read: {error}") from error
    for name, figures in floors.items():
        if not isinstance(figures, dict):
            raise StartupError(f"{path}: {name} must be a table [{name}] of figures")
        for figure, least in figures.items():
            if figure not in FIGURES or not isinstance(least, int | float) or not -100 <= least <= 100:
                raise StartupError(f"{path}: {name}: {figure} = {least}: use per cent, and one of {', '.join(sorted(FIGURES))}")
    return floors


def judge(report: SetReport, floors: Mapping[str, float], *, sampled: bool) -> list[FloorResult]:
    """Return a result for each floor whose figure was measured."""
    figures = {**report.get(NONE, {}), **report.get(EVERY, {})}
    measured = {name: figures[name] for name in floors if name in figures}
    return [FloorResult(name, floors[name], 100 * (figure.high if sampled else figure.mean)) for name, figure in measured.items()]
