"""Example requests for the profile operations in the API documentation."""

from __future__ import annotations

from agent_memory.foundation.core.feature import Example

_ADA = {"user_id": "ada"}

EXAMPLES: tuple[Example, ...] = (
    Example("rebuild_profile_v1_profile_rebuild_post", _ADA),
    Example("get_profile_v1_profile_get", {**_ADA, "q": "Where does Ada train?", "limit": 5}),
    Example("list_profile_moves_v1_profile_moves_get", {**_ADA, "limit": 10}),
    Example(
        "put_profile_schema_v1_profile_schema_put",
        {},
        {"topics": {"training": {"description": "How they train.", "sub_topics": {"training_place": "Where they train."}}}},
    ),
    Example("get_profile_schema_v1_profile_schema_get"),
    Example("delete_profile_schema_v1_profile_schema_delete"),
)
