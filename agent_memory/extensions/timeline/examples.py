"""Example requests for the timeline operations in the API documentation."""

from __future__ import annotations

from agent_memory.foundation.core.feature import Example

_ADA = {"user_id": "ada"}

EXAMPLES: tuple[Example, ...] = (
    Example("rebuild_timeline_v1_timeline_rebuild_post", _ADA),
    Example("get_timeline_v1_timeline_get", {**_ADA, "from": "2026-01-01", "to": "2027-12-31", "granularity": "month"}),
)
