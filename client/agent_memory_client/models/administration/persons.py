"""Reports on imports of exported JSON Lines files."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, Field

EXPORT_FORMAT: Final = "agent-memory-user"
EXPORT_VERSION: Final = 1
MEDIA_TYPE: Final = "application/x-ndjson"


class ImportProblem(BaseModel):
    """A line that was not imported. The report does not include the line's content."""

    line: int
    """The line number in the file, starting at 1."""
    kind: str | None = None
    """The kind of record on the line, such as `memory` or `session`. Null if the line could not be read."""
    id: str | None = None
    """The id of the memory, change or session on the line. Null if the line has no id."""
    reason: str
    """Why the line was not imported."""


class ImportReport(BaseModel):
    """The result of an import."""

    imported: dict[str, int] = Field(default_factory=dict[str, int])
    """The number of imported lines, by kind: `{"memory": 12, "session": 1}`."""
    present: dict[str, int] = Field(default_factory=dict[str, int])
    """The number of lines whose record was already stored with the same content, by kind."""
    not_restored: dict[str, int] = Field(default_factory=dict[str, int])
    """The number of lines in `present`, by kind, that were not restored because their record was deleted here or has
    expired. Only migrations count them."""
    problems: list[ImportProblem] = Field(default_factory=list[ImportProblem])
    """The first lines that were not imported, at most 1,000."""
    problem_count: int = 0
    """The number of lines that were not imported."""
    vectors_reused: int = 0
    """The number of vectors that were reused from the file."""
    vectors_to_embed: int = 0
    """The number of vectors that workers still have to compute."""
    complete: bool = False
    """True if the import included the file's last line, and its line count is correct."""
