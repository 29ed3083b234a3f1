"""Floors for the figures of a run, and whether a report keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_memory.core.errors import StartupError
from agent_memory_eval.metrics import NAMES
from agent_memory_eval.report import ANSWERABLE, OVERALL, Report, Unit

PROMPT = "prompt"
"""The floor for the share of questions whose evidence is in the prompt."""
_GROUPS = {"": OVERALL, "answerable": ANSWERABLE}


@dataclass(frozen=True, slots=True)
class Floor:
    """The least that a figure of a group of questions may be, in per cent."""

    group: str
    figure: str
    percent: float


@dataclass(frozen=True, slots=True)
class FloorResult:
    """A figure beside its floor; `percent` is None when the report does not have it, and then the floor is not kept."""

    floor: Floor
    percent: float | None

    @property
    def holds(self) -> bool:
        """Whether the figure, as it is shown (one digit after the point), is not below its floor."""
        return self.percent is not None and round(self.percent, 1) >= self.floor.percent

    def __str__(self) -> str:
        floor = self.floor
        name = f"evidence in the {PROMPT}" if floor.figure == PROMPT else floor.figure
        value = "not measured" if self.percent is None else f"{self.percent:.1f} %"
        return f"{'holds' if self.holds else 'FAILS':5} {name}, {floor.group}: {value} (at least {floor.percent:g} %)"


def floors_of(text: str | None) -> list[Floor]:
    """The floors of a list such as "R@10=80,answerable:R@10=77,MRR=50,prompt=85". Raises StartupError for anything else."""
    floors: list[Floor] = []
    for part in (text or "").split(","):
        if not part.strip():
            continue
        name, _, least = part.strip().partition("=")
        group, _, figure = name.rpartition(":")
        try:
            percent = float(least)
        except ValueError:
            percent = -1.0
        if group not in _GROUPS or figure not in (*NAMES, PROMPT) or not 0 <= percent <= 100:
            raise StartupError(
                f"--floors: {part.strip()} is not [answerable:]FIGURE=PERCENT with one of {', '.join(NAMES)}, {PROMPT} and 0 to 100"
            )
        floors.append(Floor(_GROUPS[group], figure, percent))
    return floors


def judge_floors(report: Report, unit: Unit, floors: Sequence[Floor]) -> list[FloorResult]:
    """Each floor with the report's figure."""
    return [FloorResult(floor, _percent(report, unit, floor)) for floor in floors]


def _percent(report: Report, unit: Unit, floor: Floor) -> float | None:
    if floor.figure == PROMPT:
        value = ((report["prompt"] or {}).get("evidence", {}).get(floor.group) or {}).get("share")
    else:
        value = report[unit].get(floor.group, {}).get(floor.figure)
    return None if value is None else 100 * float(value)
