"""Find the server's `.lua` files."""

from __future__ import annotations

import re
from pathlib import Path

import agent_memory

_ROOT = Path(agent_memory.__file__).parent
_PATHS = sorted(_ROOT.glob("*/*/lua/**/*.lua"))
LUA_FILES = {f"{path.relative_to(_ROOT).parts[1]}/{path.stem}": path.read_text(encoding="utf-8") for path in _PATHS}
SCRIPTS = [name for name, text in LUA_FILES.items() if text.startswith("#!lua")]
_REQUIRE = re.compile(r'^local \w+ = require\("(\w+/\w+)"\)$', re.MULTILINE)


def required_parts(name: str) -> list[str]:
    return _REQUIRE.findall(LUA_FILES[name])
