"""Generate the blocking client in every build of the package, including editable installs and source distributions."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BlockingClientHook(BuildHookInterface[Any]):
    """Runs before hatchling collects the files, so that the package includes the generated files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        runpy.run_path(str(root / "scripts" / "make_sync.py"))["write_twins"](root / "agent_memory_client")
