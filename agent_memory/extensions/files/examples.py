"""Example requests of the file operations, for the API documentation."""

from __future__ import annotations

from agent_memory.foundation.core.feature import Example

_ADA = {"user_id": "ada"}

EXAMPLES: tuple[Example, ...] = (
    Example("upload_file", {**_ADA, "name": "handbook.md"}),
    Example("list_files", _ADA),
)
