"""Update the settings tables in docs/running/configuration.md: `python scripts/settings_table.py`.

With `--check`, change nothing, and exit with code 1 if the tables are out of date. The tables list
only settings for operators. docs/migrating.md lists the archived server's variables.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from agent_memory.foundation.core.settings import GROUPS
from agent_memory.foundation.core.settings.base import kind_of, variables_of

PAGE = Path(__file__).resolve().parent.parent / "docs" / "running" / "configuration.md"
BEGIN, END = "<!-- settings: begin -->", "<!-- settings: end -->"

_LONGEST_DEFAULT = 100

TITLES = {
    "server": "Server",
    "redis": "Redis",
    "models": "Models",
    "working": "Working memory",
    "longterm": "Long-term memory",
    "search": "Search and prompts",
    "worker": "Worker",
    "forgetting": "Retention policy",
    "compaction": "Compaction",
    "views": "Summary views",
    "mcp": "MCP",
    "auth": "Access",
    "limits": "Limits",
    "compat": "Compatible APIs",
}


def main() -> int:
    """Write or check the page. Return the exit code."""
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    current = f"{head}{BEGIN}\n{tables()}\n{END}{tail}"
    if "--check" not in sys.argv:
        PAGE.write_text(current, encoding="utf-8")
        return 0
    if text != current:
        print("docs/running/configuration.md is out of date: run python scripts/settings_table.py", file=sys.stderr)
    return int(text != current)


def tables() -> str:
    """Return one table per group of settings."""
    parts: list[str] = []
    for group, model in GROUPS.items():
        rows = [row(field) for field in model.model_fields.values() if kind_of(field) == "setting"]
        if rows:
            parts.append("\n".join([f"## {TITLES[group]}", "", "| variable | default | meaning |", "|---|---|---|", *rows]))
    return "\n\n".join(parts)


def row(field: FieldInfo) -> str:
    """Return the table row for a setting."""
    name, *others = variables_of(field)
    also = f" (also `{'`, `'.join(others)}`)" if others else ""
    return f"| `{name}`{also} | {default(field)} | {field.description}{choices(field)} |"


def default(field: FieldInfo) -> str:
    """Return the default in the form of an environment variable."""
    value = field.default
    if value is None or isinstance(value, SecretStr) or value in ({}, ""):
        return "–"
    if isinstance(value, (tuple, dict)):
        return f"`{json.dumps(value)}`"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if len(text) > _LONGEST_DEFAULT:
        return f"`{','.join(text.split(',')[:2])},…` (`doctor --all` shows all)"
    return f"`{text}`"


def choices(field: FieldInfo) -> str:
    """Return the allowed words, or "" if the description lists them or there are none."""
    words = [word for word in getattr(field.annotation, "__args__", ()) if isinstance(word, str)]
    named = all(f"`{word}`" in (field.description or "") for word in words)
    return f" ({', '.join(f'`{word}`' for word in words)})" if len(words) > 1 and not named else ""


if __name__ == "__main__":
    sys.exit(main())
