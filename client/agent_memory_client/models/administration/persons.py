"""Exports and imports of a user: one JSON object per line."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, Field

EXPORT_FORMAT: Final = "agent-memory-user"
EXPORT_VERSION: Final = 1
MEDIA_TYPE: Final = "application/x-ndjson"


class ImportProblem(BaseModel):
    """A line that was not imported. Its content is not repeated."""

    line: int
    """The number of the line in the file, from 1."""
    kind: str | None = None
    """What the line holds, such as `memory` or `session`; null when it could not be read."""
    id: str | None = None
    """The id of the memory, change or session of the line, if it has one."""
    reason: str
    """Why it was not brought in."""


class ImportReport(BaseModel):
    """What became of the lines of an import."""

    imported: dict[str, int] = Field(default_factory=dict[str, int])
    """How many lines were brought in, by kind: `{"memory": 12, "session": 1}`."""
    present: dict[str, int] = Field(default_factory=dict[str, int])
    """How many lines were here already as the file has them, by kind."""
    problems: list[ImportProblem] = Field(default_factory=list[ImportProblem])
    """The lines that were not brought in, at most the first 1,000."""
    problem_count: int = 0
    """How many lines were not brought in."""
    vectors_reused: int = 0
    """How many vectors were taken over from the file."""
    vectors_to_embed: int = 0
    """How many vectors workers have to compute anew."""
    complete: bool = False
    """Whether the file's last line was among them and counts all that came before it."""
