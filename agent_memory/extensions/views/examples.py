"""Example requests for the summary view operations in the API documentation."""

from __future__ import annotations

from agent_memory.foundation.core.feature import Example

_USER = "ada"
_ADA = {"user_id": _USER}

EXAMPLES: tuple[Example, ...] = (
    Example(
        "create_summary_view_v1_summary_views_post",
        {},
        {
            "name": "What we know of each user's journeys",
            "source": "long_term",
            "group_by": ["user_id"],
            "filters": {"topics": {"any": ["travel"]}},
            "time_window_days": 365,
            "prompt": "Say in three sentences how this person likes to travel.",
        },
    ),
    Example("list_summary_views_endpoint_v1_summary_views_get"),
    Example("get_summary_view_v1_summary_views__view_id__get"),
    Example("run_summary_view_partition_v1_summary_views__view_id__partitions_run_post", {}, {"group": {"user_id": _USER}}),
    Example("list_summary_view_partitions_v1_summary_views__view_id__partitions_get", _ADA),
    Example("run_summary_view_full_v1_summary_views__view_id__run_post", {}, {"task_id": "journeys-2026-05"}),
    Example("get_task_status_v1_tasks__task_id__get", {"task_id": "journeys-2026-05"}),
    Example("delete_summary_view_endpoint_v1_summary_views__view_id__delete"),
)
