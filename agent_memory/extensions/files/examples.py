"""Example requests for the file operations in the API documentation."""

from __future__ import annotations

from agent_memory.foundation.core.feature import Example

_ADA = {"user_id": "ada"}
_HANDBOOK = {**_ADA, "file_id": "handbook"}

EXAMPLES: tuple[Example, ...] = (
    Example("upload_file", {**_HANDBOOK, "name": "handbook.txt"}, "Guests may use the kitchen until midnight."),
    Example("list_files", _ADA),
    Example("get_file", _HANDBOOK),
    Example("delete_file", _HANDBOOK),
)
