"""Examples in the OpenAPI document: a story of one user that works on a fresh server.

Ids made by the server (changes, views, operations, keys) have no example.
"""

from __future__ import annotations

import json
from typing import Any

from agent_memory.feature_list import FEATURES
from agent_memory.foundation.core.feature import Example, import_name
from agent_memory_client.models import EXPORT_FORMAT, EXPORT_VERSION

_USER = "ada"
_ADA = {"user_id": _USER}
_COACH = {"agent_id": "coach"}
_SESSION = {"session_id": "trip-to-lisbon", **_ADA}
_MEMORY = {"memory_id": "ada-window-seat"}


def _line(**values: Any) -> str:
    return json.dumps(values) + "\n"


_EXPORT = (
    _line(kind="header", format=EXPORT_FORMAT, version=EXPORT_VERSION, user_id=_USER)
    + _line(kind="rules", rules={"instructions": "Keep what concerns journeys."})
    + _line(kind="end", lines=2, counts={"header": 1, "rules": 1})
)

STORY = (
    Example("get_health_v1_health_get"),
    Example("get_ready_v1_ready_get"),
    Example("get_metrics_metrics_get"),
    Example(
        "put_extraction_rules_v1_extraction_rules_put",
        _ADA,
        {
            "instructions": "Keep what concerns journeys. Never keep what she says of colleagues.",
            "categories": [{"name": "travel", "description": "Places, dates, tickets and how she likes to travel."}],
            "do_not_record": ["salary"],
            "timezone": "Europe/Lisbon",
            "language": "English",
        },
    ),
    Example("get_extraction_rules_v1_extraction_rules_get", _ADA),
    Example(
        "put_working_memory_v1_working_memory__session_id__put",
        _SESSION,
        {
            "messages": [
                {
                    "id": "m1",
                    "role": "user",
                    "content": "I am going to Lisbon by train in June.",
                    "created_at": "2026-05-04T09:30:00Z",
                },
                {
                    "id": "m2",
                    "role": "assistant",
                    "content": "Shall I look for a night train?",
                    "created_at": "2026-05-04T09:30:05Z",
                },
            ],
            "user_id": _USER,
            "data": {"budget": 900, "currency": "EUR"},
            "ttl_seconds": 604800,
        },
    ),
    Example(
        "append_messages_v1_working_memory__session_id__messages_post",
        {"session_id": "trip-to-lisbon"},
        {
            "messages": [
                {"id": "m3", "role": "user", "content": "Yes, and with a window seat, please.", "created_at": "2026-05-04T09:31:00Z"},
            ],
            "user_id": _USER,
            "context_window_max": 8000,
        },
    ),
    Example(
        "update_data_v1_working_memory__session_id__data_patch",
        {"session_id": "trip-to-lisbon"},
        {"data": {"budget": 1200, "currency": None}, "user_id": _USER},
    ),
    Example("get_working_memory_v1_working_memory__session_id__get", _SESSION),
    Example("list_sessions_v1_working_memory__get", _ADA),
    Example("flush_working_memory", _SESSION),
    Example(
        "create_long_term_memory_v1_long_term_memory__post",
        {},
        {
            "memories": [
                {
                    "id": "ada-window-seat",
                    "text": "Ada likes a window seat when she travels by train.",
                    "user_id": _USER,
                    "memory_type": "semantic",
                    "topics": ["travel", "preferences"],
                    "entities": ["Ada"],
                    "metadata": {"tool": "web"},
                },
                {
                    "id": "ada-porto",
                    "text": "Ada lives in Porto.",
                    "user_id": _USER,
                    "slot": "home_city",
                    "valid_from": "2019-03-01T00:00:00Z",
                    "entities": ["Ada", "Porto"],
                },
                {
                    "id": "ada-lisbon",
                    "text": "Ada lives in Lisbon.",
                    "user_id": _USER,
                    "slot": "home_city",
                    "valid_from": "2026-05-01T00:00:00Z",
                    "entities": ["Ada", "Lisbon"],
                },
            ]
        },
    ),
    Example("get_long_term_memory_v1_long_term_memory__memory_id__get", _MEMORY),
    Example(
        "search_long_term_memory_v1_long_term_memory_search_post",
        {},
        {
            "text": "Where does Ada like to sit?",
            "user_id": {"eq": _USER},
            "topics": {"any": ["travel", "food"]},
            "created_at": {"gte": "2024-01-01T00:00:00Z"},
            "limit": 5,
        },
    ),
    Example(
        "memory_prompt_v1_memory_prompt_post",
        {},
        {
            "query": "Which seat should I book?",
            "session": {"session_id": "trip-to-lisbon", "user_id": _USER},
            "long_term_search": {"user_id": {"eq": _USER}, "limit": 5},
            "max_tokens": 4000,
        },
    ),
    Example(
        "explain_long_term_memory",
        {},
        {"memory_id": "ada-lisbon", "search": {"text": "Where does Ada like to sit?", "user_id": {"eq": _USER}, "limit": 1}},
    ),
    Example(
        "update_long_term_memory_v1_long_term_memory__memory_id__patch",
        _MEMORY,
        {"text": "Ada likes a window seat on trains and an aisle seat on planes.", "topics": ["travel"]},
    ),
    Example("get_memory_evidence", _MEMORY),
    Example("get_memory_history", _MEMORY),
    Example("list_changes", _ADA),
    Example("get_change"),
    Example("undo_change"),
    Example("undo_batch"),
    Example("approve_change"),
    Example("reject_change"),
    *(example for feature in FEATURES if feature.examples for example in import_name(feature.examples)),
    Example("compact_long_term_memories_endpoint_v1_long_term_memory_compact_post", _ADA),
    Example(
        "forget_endpoint_v1_long_term_memory_forget_post",
        _ADA,
        {
            "policy": {"max_age_days": 365, "max_inactive_days": 90, "memory_type_allowlist": ["message", "episodic"]},
            "pinned_ids": ["ada-window-seat"],
        },
    ),
    Example("forget_memory", body={"ids": ["ada-window-seat"], "user_id": "ada"}),
    Example("undo_forget_memory"),
    Example("purge_source", _ADA, {"source_class": ["tool", "client"], "metadata": {"tool": "web"}}),
    Example("list_quarantine", _ADA),
    Example("approve_quarantined"),
    Example("reject_quarantined"),
    Example("list_operations"),
    Example("get_operation"),
    Example("replay_operation"),
    Example("drop_operation"),
    Example("export_user", _ADA),
    Example("import_user", _ADA, _EXPORT),
    Example("export_agent", _COACH),
    Example("import_agent", _COACH, _EXPORT),
    Example(
        "create_token",
        {},
        {"description": "the travel assistant", "role": "write", "users": [_USER], "expires_days": 90},
    ),
    Example("list_tokens"),
    Example("get_token"),
    Example("rotate_token", {}, {"grace_seconds": 600}),
    Example("delete_token"),
    Example("delete_long_term_memory_v1_long_term_memory_delete", {"memory_ids": ["ada-lisbon"]}),
    Example("delete_extraction_rules_v1_extraction_rules_delete", _ADA),
    Example("delete_working_memory_v1_working_memory__session_id__delete", _SESSION),
    Example("delete_agent", _COACH),
    Example("delete_user", _ADA),
)


def add_examples(document: dict[str, Any]) -> None:
    """Add the examples to the document's operations."""
    story = {example.operation_id: example for example in STORY}
    for operation in (operation for methods in document["paths"].values() for operation in methods.values()):
        example = story.get(operation["operationId"])
        if example is None:
            continue
        for parameter in operation.get("parameters", ()):
            if parameter["name"] in example.parameters:
                parameter["example"] = example.parameters[parameter["name"]]
        for content in operation.get("requestBody", {}).get("content", {}).values():
            content["example"] = example.body
