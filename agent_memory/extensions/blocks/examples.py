"""Example requests for the block operations in the API documentation."""

from __future__ import annotations

from agent_memory.foundation.core.feature import Example

_HUMAN = {"label": "human", "user_id": "ada", "agent_id": "travel-agent"}
_SHARED = {"agent_id": "hotel-agent", "user_id": "ada"}

EXAMPLES: tuple[Example, ...] = (
    Example("put_block", _HUMAN, {"value": "Name: Ada", "description": "Lasting facts about the user.", "limit": 2000}),
    Example("edit_block", _HUMAN, {"operation": "append", "content": "Travels by train only."}),
    Example("get_block", _HUMAN),
    Example("list_blocks", {"user_id": "ada", "agent_id": "travel-agent", "shown": True}),
    Example("get_block_history", _HUMAN),
    Example("undo_block", _HUMAN, {"version": 2}),
    Example("attach_block", _HUMAN, _SHARED),
    Example("detach_block", _HUMAN, _SHARED),
    Example("delete_block", _HUMAN),
)
