"""Describe an import from another system. `agent-memory --help` loads this, so limit imports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

SOURCES = ("basic-memory", "chatgpt", "claude", "langgraph", "letta", "mem0", "memobase", "supermemory", "table", "zep")
_FINGERPRINT_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class MoveIn:
    """What to import, and for which user. If `user_id` is None, the data keeps its users."""

    source: str
    files: Sequence[Path]
    user_id: str | None = None
    namespace: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict[str, str])
    extracts: bool = False
    called: str | None = None

    @property
    def name(self) -> str:
        """The import's name. By default, it depends only on the source, the owner and the files."""
        if self.called is not None:
            return self.called
        mark = blake2b(repr((self.user_id, self.namespace)).encode(), digest_size=5)
        for path in self.files:
            mark.update(path.name.encode("utf-8", "surrogateescape"))
            if path.is_file():
                with path.open("rb") as stream:
                    mark.update(b"%d" % path.stat().st_size + stream.read(_FINGERPRINT_BYTES))
        return f"{self.source}-{mark.hexdigest()}"
