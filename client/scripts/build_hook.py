"""Generate the blocking client whenever the package is built."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BlockingClientHook(BuildHookInterface[Any]):
    """Generates files before hatchling collects them, so that the package includes them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        runpy.run_path(str(root / "scripts" / "make_sync.py"))["write_twins"](root / "agent_memory_client")
