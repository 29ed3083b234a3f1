"""What is exported of a user and brought in again: one JSON object per line."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, Field

EXPORT_FORMAT: Final = "agent-memory-user"
EXPORT_VERSION: Final = 1
MEDIA_TYPE: Final = "application/x-ndjson"


class ImportProblem(BaseModel):
    """A line that was not brought in, by its number (from 1), and why. Its content is not repeated."""

    line: int
    kind: str | None = None
    id: str | None = None
    reason: str


class ImportReport(BaseModel):
    """What became of lines: `imported` and `present` (here already, as they are in the file) count them by kind.

    Of `problems` the first 1,000 are listed and all counted. `vectors_reused` are those that came with memories, `vectors_to_embed` are
    made anew by workers. `complete` says that the file's last line was among them and counts what came before.
    """

    imported: dict[str, int] = Field(default_factory=dict[str, int])
    present: dict[str, int] = Field(default_factory=dict[str, int])
    problems: list[ImportProblem] = Field(default_factory=list[ImportProblem])
    problem_count: int = 0
    vectors_reused: int = 0
    vectors_to_embed: int = 0
    complete: bool = False
