"""Update the tables of metrics, MCP tools and client methods: `python scripts/reference/tables.py`.

With `--check`, change nothing, and exit with code 1 if a page is out of date. Each table is between
two HTML comments.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from prometheus_client import Histogram
from prometheus_client.metrics import MetricWrapperBase

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from agent_memory.foundation.core import metrics  # noqa: E402
from agent_memory.foundation.core.mcp_tools import CHOICES  # noqa: E402
from agent_memory.interfaces.mcp.tools import TOOLS  # noqa: E402
from scripts.reference import python_client  # noqa: E402

DOCS = ROOT / "docs"

ALERTS = {
    "agent_memory_http_requests": "shows over 1% of 5xx",
    "agent_memory_http_request_seconds": "has a p95 above your target",
    "agent_memory_http_refused": "rises: start another API process",
    "agent_memory_limited": "rises: the [audit log](security.md#audit) shows which tenant reached its [quota](access.md#limits)",
    "agent_memory_outbox_pending": "rises for 15 minutes, or is NaN (Redis does not answer)",
    "agent_memory_outbox_dead": "is over 0: [list](background-work.md#operations) the dead letters of each tenant, with "
    "a key of that tenant",
    "agent_memory_outbox_oldest_seconds": "is over 60 for 5 minutes: too few workers, or none",
}
"""When to alert, which the code does not know. A metric without an entry needs no alert."""


def main() -> int:
    """Write or check the tables. Return the exit code."""
    outdated = [page for (page, name), table in TABLES.items() if not _put(DOCS / page, name, table())]
    if "--check" not in sys.argv or not outdated:
        return 0
    print(f"not up to date: {', '.join(outdated)}; run python scripts/reference/tables.py", file=sys.stderr)
    return 1


def _put(page: Path, name: str, table: str) -> bool:
    """Update the table on the page unless `--check` is given. Return True if it was up to date."""
    text = page.read_text("utf-8")
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    head, _, rest = text.partition(begin)
    expected = f"{head}{begin}\n{table}\n{end}{rest.partition(end)[2]}"
    if "--check" not in sys.argv:
        page.write_text(expected, "utf-8")
    return text == expected


def metrics_table() -> str:
    """Return a table of this package's metrics."""
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
    """Return a table of MCP tools, with the first clause of each description."""
    rows = ["| `MCP_TOOLS` | tool | description |", "|---|---|---|"]
    for choice in CHOICES:
        first = f"`{choice}`"
        for tool in TOOLS.values():
            if tool.offered == choice:
                clause = re.split(r"[.,:;]\s", " ".join(tool.description.split()) + " ")[0]
                rows.append(f"| {first} | {_link(tool.name, tool.run.__module__.split('.'))} | {clause} |")
                first = ""
    return "\n".join(rows)


def resources_table() -> str:
    """Return a table of the Python client's resources and methods, with links to the docs."""
    rows = ["| resource | methods |", "|---|---|"]
    for resource, value in python_client.resources().items():
        rows.append(f"| {_link(resource, [resource])} | {', '.join(f'`{method}`' for method, _ in python_client.methods(type(value)))} |")
    return "\n".join(rows)


def _link(name: str, subjects: list[str]) -> str:
    """Format the name as code, and link it to a page in docs/memory if there is one."""
    pages = [f"{subject}.md" for subject in subjects if (DOCS / "memory" / f"{subject}.md").exists()]
    return f"[`{name}`](../memory/{pages[0]})" if pages else f"`{name}`"


TABLES: dict[tuple[str, str], Callable[[], str]] = {
    ("running/operations.md", "metrics"): metrics_table,
    ("clients/mcp.md", "tools"): tools_table,
    ("clients/client.md", "resources"): resources_table,
}

if __name__ == "__main__":
    sys.exit(main())
