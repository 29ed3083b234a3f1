"""Write the tables of metrics and MCP tools into their pages: `python scripts/reference/tables.py`.

`--check` writes nothing, and ends with exit code 1 if a page is not up to date. Each table stands between two comments.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from prometheus_client import Histogram
from prometheus_client.metrics import MetricWrapperBase

from agent_memory.foundation.core import metrics
from agent_memory.foundation.core.mcp_tools import CHOICES
from agent_memory.interfaces.mcp.tools import TOOLS

DOCS = Path(__file__).resolve().parents[2] / "docs"

ALERTS = {
    "agent_memory_http_requests": "shows over 1% of 5xx",
    "agent_memory_http_request_seconds": "has a p95 above your target",
    "agent_memory_http_refused": "rises: start another API process",
    "agent_memory_limited": "rises: the [audit log](security.md#audit) shows which tenant reached its [quota](access.md#limits)",
    "agent_memory_outbox_pending": "rises for 15 minutes (too few workers, or work is waiting) or is NaN (Redis does not answer)",
    "agent_memory_outbox_dead": "is over 0: [find](background-work.md#operations) the dead letters, with a key of each tenant",
    "agent_memory_outbox_oldest_seconds": "is over 60 for 5 minutes: too few workers, or none",
}
"""When to alert, which the code does not know. A metric without an entry needs no alert."""


def main() -> int:
    """Write or check the tables; return the exit code."""
    outdated = [page for (page, name), table in TABLES.items() if not _put(DOCS / page, name, table())]
    if "--check" not in sys.argv or not outdated:
        return 0
    print(f"not up to date: {', '.join(outdated)}; run python scripts/reference/tables.py", file=sys.stderr)
    return 1


def _put(page: Path, name: str, table: str) -> bool:
    """Return whether the page contains the table. If it does not, write it, except with `--check`."""
    text = page.read_text("utf-8")
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    head, _, rest = text.partition(begin)
    expected = f"{head}{begin}\n{table}\n{end}{rest.partition(end)[2]}"
    if "--check" not in sys.argv:
        page.write_text(expected, "utf-8")
    return text == expected


def metrics_table() -> str:
    """Return a table of the metrics that this package declares."""
    rows = ["| metric | meaning | alert if the value |", "|---|---|---|"]
    declared = [metric for metric in vars(metrics).values() if isinstance(metric, MetricWrapperBase)]
    unknown = ALERTS.keys() - {metric.describe()[0].name for metric in declared}
    assert not unknown, f"there is no metric {', '.join(unknown)}"
    for metric in declared:
        family = metric.describe()[0]
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = ",".join(metric._labelnames)  # noqa: SLF001
        kind = " (histogram)" if isinstance(metric, Histogram) else ""
        alert = ALERTS.get(family.name, "–")
        rows.append(f"| `{name}{'{' + labels + '}' if labels else ''}`{kind} | {family.documentation.removesuffix('.')} | {alert} |")
    return "\n".join(rows)


def tools_table() -> str:
    """Return a table of the MCP tools with the first clause of their descriptions, the smallest set of tools first."""
    rows = ["| `MCP_TOOLS` | tool | description |", "|---|---|---|"]
    for choice in CHOICES:
        first = f"`{choice}`"
        for tool in TOOLS.values():
            if tool.offered == choice:
                clause = re.split(r"[.,:;]\s", " ".join(tool.description.split()) + " ")[0]
                rows.append(f"| {first} | `{tool.name}` | {clause} |")
                first = ""
    return "\n".join(rows)


TABLES: dict[tuple[str, str], Callable[[], str]] = {
    ("running/operations.md", "metrics"): metrics_table,
    ("clients/mcp.md", "tools"): tools_table,
}

if __name__ == "__main__":
    sys.exit(main())
