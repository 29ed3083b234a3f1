"""Load data tables such as `text/data/words/common.toml`."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any


def read_table(path: str) -> dict[str, Any]:
    """Return the contents of a TOML file. `path` is relative to `agent_memory/foundation`."""
    return tomllib.loads(resources.files("agent_memory.foundation").joinpath(path).read_text(encoding="utf-8"))
