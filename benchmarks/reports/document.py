"""Write benchmark figures to docs/performance.md and a chart to docs/performance.svg."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.reports import goals, plot, report

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
_DOCS = Path(__file__).parents[2] / "docs"


def merged(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Merge results, keeping the first of duplicate measurements.

    All growth figures come from the same run.
    """
    merged_result: dict[str, Any] = {"operations": [], "limits": [], "stores": [], "failures": []}
    for result in results:
        if "growth" not in merged_result and (pair := goals.small_and_large(result)):
            merged_result["growth"] = pair
        for name in ("sizes", "pipeline", "two", "local", "machine"):
            if result.get(name) and name not in merged_result:
                merged_result[name] = result[name]
        had = {_name(row) for part in ("operations", "limits", "stores") for row in merged_result[part]}
        for part in ("operations", "limits", "stores"):
            merged_result[part] += [row for row in result[part] if _name(row) not in had]
        merged_result["failures"] += result.get("failures", [])
    return merged_result


def _name(row: dict[str, Any]) -> tuple[object, ...]:
    return tuple(row.get(field) for field in ("limit", "operation", "memories", "concurrency"))


def page(before: str, result: dict[str, Any]) -> str:
    """Insert a result's figures into the page. Raises ValueError if the page has no marker."""
    head, begin, rest = before.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page lacks {BEGIN} or {END}")
    machine = result.get("machine", {})
    when = f"Measured on {machine['when'][:10]} with Python {machine['python']} on {machine['cpu']}.\n\n" if machine else ""
    picture = "![CPU of the API beside its limits](performance.svg)\n\n"
    return f"{head}{BEGIN}\n\n{when}{goals.markdown(result)}\n{picture}{report.summary(result)}\n{END}{tail}"


def write(results: Sequence[dict[str, Any]], folder: Path = _DOCS) -> None:
    """Write the page and the chart."""
    result, path = merged(results), folder / "performance.md"
    path.write_text(page(path.read_text("utf-8"), result), "utf-8")
    (folder / "performance.svg").write_text(plot.svg(result), "utf-8")
